"""The settings in force are stated when they change, and once."""

from storage.database.database import Database
from storage.journal.audit import page_of_lines
from storage.journal.settings import state_settings


def test_settings_are_stated_when_they_change(database: Database) -> None:
    first, second = {"identity_provider": None, "lease": 60}, {"identity_provider": "x", "lease": 1}
    assert [state_settings(database, one) for one in (first, first, second, second, first)] == [
        True,
        False,
        True,
        False,
        True,
    ]
    lines = page_of_lines(database, 10).items
    assert [line.detail for line in lines] == [first, second, first]
    assert {(line.actor, line.action) for line in lines} == {("(operator)", "service.settings")}
