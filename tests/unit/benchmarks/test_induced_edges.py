"""Edges induced by nodes that come and go: every subset of small public graphs, by brute force."""

from __future__ import annotations

from itertools import combinations
from math import exp

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from benchmarks.statistics.induced_edges import InducedEdges, Neighbours, taking_part
from mechanisms.model.records import PrefixRecords
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.local_sensitivity import DistanceBound
from mechanisms.statistics.release.ladder import ladder_probability, rungs
from mechanisms.statistics.release.smooth import LargestLocalSensitivities, SmoothSensitivity
from mechanisms.statistics.statistic import Measurement
from tests.evidence.certification.divergence import hockey_laplace
from tests.support.contexts import context
from tests.unit.mechanisms.statistics.worlds import graph_dataset

NODES = 5
PUBLIC = {
    "path": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "clique": list(combinations(range(NODES), 2)),
    "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],
    "pair": [(0, 1)],
}
Subset = frozenset[int]
SUBSETS = [frozenset(c) for size in range(NODES + 1) for c in combinations(range(NODES), size)]
PAIRS = [
    (i, j) for i, j in combinations(range(len(SUBSETS)), 2) if len(SUBSETS[i] ^ SUBSETS[j]) == 1
]


def measured(edges: list[tuple[int, int]]) -> tuple[Plan, list[Measurement]]:
    ends = tuple(np.array([edge[side] for edge in edges], np.int32) for side in (0, 1))
    result, dataset = [], graph_dataset(NODES)
    for subset in SUBSETS:
        request = InducedEdges((ends[0], ends[1]), taking_part(NODES, sorted(subset)))
        plan = request.plan(dataset, NANO)
        result.append(request.measure(context(PrefixRecords(0), dataset), plan))
    return plan, result


@pytest.mark.parametrize("name", PUBLIC)
def test_local_sensitivities(name: str) -> None:
    edges = PUBLIC[name]
    plan, result = measured(edges)
    values = [sum(a in subset and b in subset for a, b in edges) for subset in SUBSETS]
    assert [m.value for m in result] == values
    exact = [0] * len(values)
    for i, j in PAIRS:
        change = abs(values[i] - values[j])
        exact[i], exact[j] = max(exact[i], change), max(exact[j], change)
    assert max(exact) == plan.cap
    for s in range(NODES + 2):
        for bound in ("local", "levels"):
            walked = [getattr(m, bound) for m in result]
            assert all(isinstance(w, DistanceBound) for w in walked)
            reached = [int(w.at(np.array([s]))[0]) for w in walked]
            assert reached == exact if bound == "local" else all(map(int.__ge__, reached, exact))
        exact = [
            max([exact[i]] + [exact[b if a == i else a] for a, b in PAIRS if i in (a, b)])
            for i in range(len(exact))
        ]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_mechanism_is_private(name: str) -> None:
    plan, result = measured(PUBLIC[name])
    loss = PrivacyLoss.parse("1", "0.001")
    for mechanism in (SmoothSensitivity(), LargestLocalSensitivities()):
        laws = [(float(m.value), float(mechanism.rate(m, plan, loss).exponent())) for m in result]
        for i, j in PAIRS:
            for p, q in ((laws[i], laws[j]), (laws[j], laws[i])):
                assert hockey_laplace(p, q, 1.0) <= 0.001 * (1 + 1e-9)
    ladders = [(m.value, rungs(m.local)) for m in result]  # type: ignore[arg-type]
    laws = np.array(
        [
            [ladder_probability(y - value, widths, 1.0) for y in range(-30, 50)]
            for value, widths in ladders
        ]
    )
    for i, j in PAIRS:
        assert (laws[i] <= exp(1) * laws[j] * (1 + 1e-9)).all()
        assert (laws[j] <= exp(1) * laws[i] * (1 + 1e-9)).all()


def test_a_bound_that_stands_still_is_rejected() -> None:
    # Danger: noise that simply follows the local sensitivity uses the present one as the bound at
    # every distance. Neighbours then have different noise, which tells them apart.
    _, result = measured(PUBLIC["star"])
    now = [int(m.local.at(np.array([0]))[0]) for m in result]  # type: ignore[union-attr]
    later = [int(m.local.at(np.array([1]))[0]) for m in result]  # type: ignore[union-attr]
    assert any(now[i] < now[j] or now[j] < now[i] for i, j in PAIRS)
    assert all(later[i] >= now[j] and later[j] >= now[i] for i, j in PAIRS)
    assert Neighbours(np.array([0, 0, 1])).at(np.array([0, 1, 9])).tolist() == [1, 2, 2]
