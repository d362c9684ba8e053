"""What Alembic runs: it works in the transaction it is handed, so a migration is all or nothing."""

from __future__ import annotations

from alembic import context

from storage.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
