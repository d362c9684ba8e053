"""Objectives: their members, and that a single one equals its utility."""

from __future__ import annotations

from decimal import Decimal

import pytest

from mechanisms.model.candidates import AllNodes
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import OBJECTIVES, Objective, SingleUtility, Term
from mechanisms.utilities import UTILITIES
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of

NODES = [name for name, utility in UTILITIES.items() if utility.candidates == "nodes"]
TRIANGLE_AND_TAIL = graph_of(4, [(0, 1), (1, 2), (2, 0), (2, 3)])


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_a_single_objective_is_its_utility(name: str, sensitivity: Sensitivity) -> None:
    utility, dataset, everyone = UTILITIES[name], dataset_of(4, 3), AllNodes()
    objective = OBJECTIVES["single"]([Term(utility)])
    assert objective.candidates == utility.candidates
    assert objective.relations == utility.relations
    assert objective.direction == utility.direction
    grid = objective.grid(dataset, everyone, sensitivity)
    assert grid == utility.grid(dataset, everyone, sensitivity)
    records = records_of(TRIANGLE_AND_TAIL)
    actual = objective.measure(records, dataset, everyone, sensitivity, grid)
    expected = utility.measure(records, dataset, everyone, sensitivity, grid)
    assert actual.utilities.tolist() == expected.utilities.tolist()
    assert type(actual.delta) is type(expected.delta)


def test_objectives_may_be_members_of_objectives() -> None:
    inner: Objective = SingleUtility([Term(UTILITIES["degree"])])
    outer = SingleUtility([Term(inner)])
    assert outer.grid(dataset_of(4, 3), AllNodes(), Sensitivity.LOCAL).largest == 3


@pytest.mark.parametrize(
    "terms",
    [
        [],
        [Term(UTILITIES["degree"]), Term(UTILITIES["egocentric_density"])],
        [Term(UTILITIES["degree"], weight=Decimal("0.5"))],
    ],
)
def test_a_single_objective_refuses_other_terms(terms: list[Term]) -> None:
    with pytest.raises(UnsupportedQuery, match="one utility") as refusal:
        OBJECTIVES["single"](terms)
    assert refusal.value.supported == {"objective": "single", "utilities": 1}
