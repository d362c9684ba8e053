"""Real tables: by every utility, the attribute that is known to be decisive ranks first."""

from __future__ import annotations

import csv
import gzip
import json
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.table_candidates import Attributes, ValuesOf
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.selection import SELECTORS
from mechanisms.selection.top_k import select_top
from mechanisms.utilities import UTILITIES
from tests.support.data import data_file

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def mushroom() -> tuple[TableDomain, TableRecords]:
    schema = json.loads(data_file("mushroom.schema.json").read_text())
    attributes = tuple(
        CategoricalAttribute(a["name"], tuple(a["domain"])) for a in schema["attributes"]
    )
    with gzip.open(data_file("mushroom.csv.gz"), "rt", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    codes = {
        a.name: np.array([a.levels.index(row[a.name]) for row in rows], np.uint8)
        for a in attributes
    }
    return TableDomain(attributes, "class", max_rows=10_000), TableRecords(codes, {})


def selected(
    mushroom: tuple[TableDomain, TableRecords], candidates: Any, name: str, sensitivity: Sensitivity
) -> str:
    domain, records = mushroom
    dataset = Dataset("mushroom", NeighbouringRelation.ADD_REMOVE, domain)
    (chosen,) = select_top(
        records,
        dataset,
        candidates,
        UTILITIES[name],
        sensitivity,
        SELECTORS["permute_and_flip"],
        1,
        "peeled",
        PrivacyLoss.parse("100000"),
        SystemRandomness(),
        Inline(),
    )
    return str(candidates.label(dataset, int(chosen)))


@pytest.mark.parametrize("name", ["information_gain", "mutual_information", "gini", "max"])
@pytest.mark.parametrize("sensitivity", [Sensitivity.GLOBAL, Sensitivity.FLATTENED])
def test_odour_tells_poison(
    mushroom: tuple[TableDomain, TableRecords], name: str, sensitivity: Sensitivity
) -> None:
    """At ε = 10⁵ another attribute has a chance below e⁻¹⁰⁰: it is many records behind."""
    names = tuple(a.name for a in mushroom[0].attributes if a.name != "class")
    assert selected(mushroom, Attributes(names, "class"), name, sensitivity) == "odor"


def test_white_is_the_commonest_veil(mushroom: tuple[TableDomain, TableRecords]) -> None:
    assert selected(mushroom, ValuesOf("veil-color"), "count", Sensitivity.LOCAL) == "w"
