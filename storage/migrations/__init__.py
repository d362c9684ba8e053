"""Alembic's scripts: `storage.migrating` runs them at start, `versions/` holds them in order."""
