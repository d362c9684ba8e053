"""The table of statistics in the documents and in the catalogue is the one that queries obey."""

from __future__ import annotations

import re
from typing import get_args

from app.queries.catalogue import statistic
from app.queries.statistic.body import FIELDS, MechanismName, StatisticName
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.statistics import MECHANISMS, STATISTICS
from mechanisms.statistics.validity import VALID
from tests.architecture.imports import ROOT


def rows() -> set[tuple[str, ...]]:
    return {
        (
            f"`{row.statistic}`",
            f"`{row.mechanism}`",
            ", ".join(f"`{relation}`" for relation in row.relations),
            "ε, δ" if row.delta else "ε",
            "recommended" if row.recommended else "",
        )
        for row in VALID
    }


def test_the_document_has_the_table() -> None:
    text = (ROOT / "docs/statistics.md").read_text("utf-8")
    listed = re.findall(r"^\| (`\w+`) \| (`\w+`) \| ([^|]+) \| ([^|]+) \| ?(\w*) ?\|$", text, re.M)
    assert len(listed) == len(VALID)
    assert set(listed) == rows()


def test_names_agree_everywhere() -> None:
    assert set(get_args(StatisticName)) == set(STATISTICS) == set(FIELDS)
    assert set(get_args(MechanismName)) == set(MECHANISMS)
    assert {row.statistic for row in VALID} == set(STATISTICS)
    assert {row.mechanism for row in VALID} == set(MECHANISMS)


def test_one_mechanism_is_recommended_under_each_relation() -> None:
    for name in STATISTICS:
        for relation in NeighbouringRelation:
            fitting = [row for row in VALID if row.statistic == name and relation in row.relations]
            assert sum(row.recommended for row in fitting) == bool(fitting)


def test_the_catalogue_has_the_table() -> None:
    for name in STATISTICS:
        entry = statistic(name)
        assert [m["name"] for m in entry["mechanisms"]] == [
            row.mechanism for row in VALID if row.statistic == name
        ]
        assert entry["description"]
        assert entry["source"]
