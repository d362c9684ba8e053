"""Alembic's scripts, which `storage.database.migrating` runs in the order of `versions/`."""
