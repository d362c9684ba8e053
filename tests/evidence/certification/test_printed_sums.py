"""Known breaches of sums and of shortcuts: the checks must reject each, as found here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.utilities.tree_rates import TrueNegativeRate, TruePositiveRate
from tests.evidence.certification import checks, graphs, printed_sums, synthetic
from tests.evidence.certification.objectives import measurements, pareto, weighted
from tests.evidence.certification.printed_objectives import definition_4_5
from tests.evidence.certification.printed_sums import Delta
from tests.evidence.certification.synthetic import Synthetic
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE
from tests.evidence.certification.universes import FAMILIES, graph_universe


def test_the_form_in_use_is_never_above_the_repaired_definition() -> None:
    """Losses and gains taken apart: at most |dom⁻_t| + |ndom⁺_t|, and often less."""
    rng = np.random.default_rng(5)
    smaller, ones = 0, [[1] * 5] * 2
    for _ in range(50):
        values = rng.integers(0, 6, (2, 5))
        # The second dataset, the only neighbour, has all utilities larger by one. So the local
        # sensitivity δ is 1 at every distance.
        edges = synthetic.path(2)
        utilities = [Synthetic(np.stack([row, row + 1]), edges) for row in values]
        universe = synthetic.universe(2, edges, 5)
        measured = measurements(pareto(*utilities), universe, Sensitivity.LOCAL).each[0]
        for t in range(4):
            served = measured.delta.at(t, np.arange(5))
            basic = [
                max(1, definition_4_5(values.tolist(), ones, t, r, inclusive=True, itself=False))
                for r in range(5)
            ]
            assert (served <= basic).all()
            smaller += int((served < basic).sum())
    assert smaller


def test_a_delta_held_between_some_t_is_rejected() -> None:
    """δ worked out at t = 0, 1, 2, 4, … and used until the next one: (A2) fails between."""
    breaches = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        values = np.cumsum(rng.integers(-1, 2, (2, 6, 4)), axis=1)
        edges = synthetic.path(6)
        utilities = [Synthetic(table, edges) for table in values]
        universe = synthetic.universe(6, edges, 4)
        readings = measurements(pareto(*utilities), universe, Sensitivity.LOCAL)
        delta = readings.delta()
        plateau = delta[:, [0, 1, 2, 2, 4, 4, 4, 4]]
        assert checks.admissibility_breach(readings.utilities(), delta, universe.pairs) is None
        breach = checks.admissibility_breach(readings.utilities(), plateau, universe.pairs)
        if breach is not None:
            breaches.append(breach.rule)
    assert "A2" in breaches


Sum = Callable[[Sequence[int], Delta, int, int], int]

#: The number of grid steps in one unit: all densities of graphs of five nodes are whole numbers of
#: steps.
UNIT = 60


def node_delta(graph: graphs.Graph) -> Delta:
    """δ of the degree (0) and of the density (1)."""

    def delta(i: int, v: int, t: int) -> int:
        return UNIT if i == 0 else -(-2 * UNIT // max(graph[v].bit_count() - t, 2))

    return delta


def degree_plus_density(form: Sum, up_to: int) -> tuple[int, checks.Breach] | None:
    """The smallest number of nodes at which δ of degree + density fails, and how."""
    for nodes in range(2, up_to + 1):
        everyone, members = range(nodes), list(graphs.all_graphs(nodes, nodes - 1))
        utilities = [
            [UNIT * (graphs.degree(g, v) + graphs.egocentric_density(g, v)) for v in everyone]
            for g in members
        ]
        deltas = [
            [[form((1, 1), node_delta(g), t, v) for v in everyone] for t in range(nodes)]
            for g in members
        ]
        breach = checks.admissibility_breach(
            np.array(utilities).astype(np.int64),
            np.array(deltas),
            graph_universe(nodes, nodes - 1).pairs,
        )
        if breach is not None:
            return nodes, breach
    return None


def its_own_delta_each(weights: Sequence[int], delta: Delta, t: int, v: int) -> int:
    return sum(abs(weight) * delta(i, v, t) for i, weight in enumerate(weights))


def test_one_delta_for_every_term_is_rejected() -> None:
    """The published runs: δ of the density stands for the degree too, which moves by more."""
    density = partial(printed_sums.first_delta_in_step, first=1)
    example = degree_plus_density(density, 5)
    assert example is not None
    assert (example[0], example[1].rule) == (4, "A1")
    hub = list(graphs.all_graphs(4, 3))[example[1].x][example[1].candidate]
    assert hub.bit_count() == 3
    assert degree_plus_density(its_own_delta_each, 5) is None


def test_at_degree_1000_one_delta_for_every_term_is_a_fifth_of_an_edge() -> None:
    """degree + 100·density: 0.2022, while an edge moves the degree alone by 1."""

    def delta(i: int, r: int, t: int) -> int:  # noqa: ARG001
        return 2 * 10**9 // max(1000 - t, 2) if i else 10**9

    one_delta = printed_sums.first_delta_for_every_term((1, 100), delta, 0, 0, first=1)
    assert one_delta * 10**4 // 10**9 == 2022
    assert one_delta < delta(0, 0, 0)


class CarelessTruePositiveRate(TruePositiveRate):
    """Claims under every relation what holds under add/remove."""

    def exclusive(self, dataset: Dataset) -> tuple[str, str] | None:  # noqa: ARG002
        return "the class of a record", self.name


class CarelessTrueNegativeRate(TrueNegativeRate):
    def exclusive(self, dataset: Dataset) -> tuple[str, str] | None:  # noqa: ARG002
        return "the class of a record", self.name


def rates_breach(relation: NeighbouringRelation, weights: tuple[int, int]) -> checks.Breach | None:
    """The first breach of the larger of the two rates' δ in place of their sum."""
    rates = CarelessTruePositiveRate(), CarelessTrueNegativeRate()
    objective = weighted(*zip(rates, weights, strict=True))
    family = FAMILIES["trees", relation]
    for size in family.sizes:
        universe = family.build(*size)
        readings = measurements(objective, universe, Sensitivity.LOCAL)
        breach = checks.admissibility_breach(readings.utilities(), readings.delta(), universe.pairs)
        if breach is not None:
            return breach
    return None


@pytest.mark.parametrize("weights", [(1, 1), (2, -3)])
def test_the_larger_rate_alone_is_rejected_under_replace(weights: tuple[int, int]) -> None:
    """One record that changes its class moves both rates; one that comes or goes does not."""
    breach = rates_breach(REPLACE, weights)
    assert breach is not None
    assert breach.rule == "A1"
    assert rates_breach(ADD_REMOVE, weights) is None
