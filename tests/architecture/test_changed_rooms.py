"""``./run test --quick`` names the tests of the changed rooms and of those that import them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.changed_rooms import importers, unit_tests_for


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("mechanisms/noise/race.py", "tests/unit/mechanisms/noise"),
        ("mechanisms/noise/race.py", "tests/unit/mechanisms/selection"),
        ("mechanisms/kernels/pairs.py", "tests/unit/mechanisms/utilities"),
        ("storage/ledger/ledger.py", "tests/unit/storage/ledger"),
        ("storage/ledger/ledger.py", "tests/unit/storage/catalogue"),
        ("app/http/headers.py", "tests/unit/app/routes"),
        ("app/dashboard/static/style.css", "tests/unit/app/dashboard"),
        ("client/privypurse/client.py", "tests/unit/client"),
    ],
)
def test_a_change_concerns_its_room_and_the_rooms_that_import_it(path: str, folder: str) -> None:
    assert folder in unit_tests_for([Path(path)])


def test_a_room_that_does_not_import_the_changed_one_is_left_out() -> None:
    assert "tests/unit/mechanisms/utilities" not in unit_tests_for(
        [Path("mechanisms/noise/race.py")]
    )
    assert "mechanisms.utilities" in importers({"mechanisms.kernels"})


def test_a_changed_test_is_run_once() -> None:
    changed = [
        Path("accounting/account.py"),
        Path("tests/unit/accounting/test_composition.py"),
        Path("tests/process/test_demo.py"),
    ]
    tests = unit_tests_for(changed)
    assert "tests/unit/accounting" in tests
    assert "tests/process/test_demo.py" in tests
    assert "tests/unit/accounting/test_composition.py" not in tests


def test_documents_concern_no_unit_test() -> None:
    assert unit_tests_for([Path("README.md"), Path("docs/privacy.md")]) == []
