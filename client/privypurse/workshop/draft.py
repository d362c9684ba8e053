"""Drafts the public description of a table, without any value that stands in it.

Danger: a description is public, and a bound or a list of values that is read off the records tells
of them. So the draft has ``null`` there, and the service refuses it until the owner has decided.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privypurse.workshop.column_profile import ColumnProfile, is_number_or_date
from privypurse.workshop.databases import RawTable

NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
#: For each kind of attribute, the members of its description that the owner has to decide.
DECISIONS: dict[str | None, tuple[str, ...]] = {
    "categorical": ("values", "missing"),
    "numeric": ("bounds", "bins", "missing"),
    "date": ("bounds", "bins", "missing"),
    None: (),
}


@dataclass(frozen=True)
class Draft:
    """A description to be completed, and a report for the owner alone."""

    description: dict[str, Any]
    report: dict[str, Any]


def draft(table: RawTable, name: str | None, person: str | None = None) -> Draft:
    """Draft the description of a table.

    Args:
        name: the name of the dataset; None, or a text that is no name, leaves it open.
        person: the column that says whose a row is.

    Raises: ValueError if the columns have no names that a description may have, or if the first
        line looks like a record.
    Privacy: the draft has the names and the kinds of columns, and no cell. A kind follows from
        nearly all cells of its column, so the owner should still confirm it.
    """
    _check_names(table.names)
    if person is not None and person not in table.names:
        raise ValueError(f"no column is named {person}")
    profiles = [ColumnProfile(column) for column in table.names]
    rows = 0
    for row in table.rows:
        rows += 1
        for profile, cell in zip(profiles, row, strict=True):
            profile.add(cell)
    for profile in profiles:
        if profile.distinct is not None and profile.name in profile.distinct:
            raise ValueError(
                f"the name of column {profile.name} is also a cell of it: is the first line a "
                "header?"
            )
    described = [_attribute(profile) for profile in profiles if profile.name != person]
    description: dict[str, Any] = {
        "name": name if name and NAME.fullmatch(name) else None,
        "kind": "table",
        "neighbouring": "add_remove",
        "max_rows": None,
        **({} if person is None else {"person": person, "records_per_person": None}),
        "attributes": described,
        "cap": None,
    }
    report = {"rows": rows, "columns": [profile.report() for profile in profiles]}
    return Draft(description, report)


def write_report(file: Path, text: str) -> None:
    """Write a file that its owner alone can read, also if it was there before with other rights."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        os.fchmod(handle, 0o600)
        stream.truncate(0)
        stream.write(text)


def _attribute(profile: ColumnProfile) -> dict[str, Any]:
    kind = profile.kind
    return {"name": profile.name, "kind": kind, **dict.fromkeys(DECISIONS[kind])}


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise ValueError("there is no first line that names the columns")
    for position, name in enumerate(names, 1):
        if is_number_or_date(name):
            raise ValueError(
                f"column {position} is named like a number or a date: is the first line a header?"
            )
        if not NAME.fullmatch(name):
            raise ValueError(
                f"column {position}: a name has 1 to 100 of the letters a-z, A-Z, digits, _ . and -"
            )
    if len(set(names)) != len(names):
        raise ValueError("two columns have the same name")
