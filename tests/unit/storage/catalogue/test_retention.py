"""What is to stay in a store, told while uploads become versions."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from storage.catalogue import retention, versions
from tests.support.world import World


@pytest.mark.parametrize("moment", range(4))
def test_a_version_published_between_two_statements_is_known(world: World, moment: int) -> None:
    """PostgreSQL shows each of them what was committed before it, not before the first."""
    stored = world.dataset(ready=False)
    upload = world.versions.begin_upload(stored.name, actor=world.owner)
    folder, statements = f"{upload}-{'0' * 32}", []

    def publish(connection: Any, *_: object) -> None:
        if connection is not reading:
            return
        statements.append(moment)
        if len(statements) == moment + 1:
            world.database.write(
                lambda connection: versions.next_version(connection, upload, None, folder)
            )

    with world.database.read() as reading:
        event.listen(world.database.engine, "before_cursor_execute", publish)
        references = retention.read_references(reading)
    assert len(statements) == 4
    assert references is not None
    assert folder in references.versions or upload in references.uploads
