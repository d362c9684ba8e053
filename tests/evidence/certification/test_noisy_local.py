"""Noisy local sensitivity of two-triangles: the exact divergence of neighbours, within δ.

Small graphs are enumerated. In them the public bounds soon end all noise, so states of larger ones
are tried as well: every combination of a_max, LS and f that the second-order bound admits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.noise.rate import Rate
from mechanisms.statistics.release.noisy_local import NoisyLocalSensitivity
from mechanisms.statistics.triangles import TwoTriangles, global_sensitivity
from tests.evidence.certification.noisy_local import (
    Rules,
    State,
    answer_law,
    cached_margin,
    divergence,
)
from tests.evidence.certification.test_graph_statistics import universe
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import p_value
from tests.unit.mechanisms.statistics.worlds import graph, graph_dataset

LOSSES = [
    PrivacyLoss.parse(epsilon, delta)
    for epsilon, delta in (("0.3", "0.2"), ("1", "0.01"), ("3", "0.05"), ("8", "0.0001"))
]


def rules_of(nodes: int, loss: PrivacyLoss) -> Rules:
    return Rules(loss, 4 * (nodes - 2), global_sensitivity(nodes - 2))


def admitted() -> Iterator[tuple[State, State]]:
    """States of neighbours, as far apart as a_max and LS let them be."""
    for shared in range(4):
        for other in (shared, shared + 1):
            for change in (0, 1, 5, 20):
                for apart in {0, 2 * shared, 4 * shared}:
                    f = min(change, change + apart)
                    here, there = (0, shared, change), (f, other, change + apart)
                    yield here, there
                    yield there, here


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_states_of_larger_graphs(loss: PrivacyLoss) -> None:
    rules = rules_of(16, loss)
    worst = max(divergence(p, q, rules) for p, q in admitted())
    assert worst <= loss.delta_atto / 1e18


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_all_small_graphs(nodes: int, loss: PrivacyLoss) -> None:
    space = universe(nodes, nodes - 1)
    states = [
        (measured.value, *measured.support[:2])
        for measured in space.measured["two_triangles"]
        if measured.support is not None
    ]
    assert len(states) == len(space.members)
    pairs = {(states[i], states[j]) for i, j in space.pairs}
    pairs |= {(q, p) for p, q in pairs}
    if nodes == 3:
        # A two-triangle is a pair of triangles on a common edge. Three nodes are too few for one,
        # so the answer is the constant 0 and needs no noise.
        assert {f for f, _, _ in states} == {0}
        return
    rules = rules_of(nodes, loss)
    assert max(divergence(p, q, rules) for p, q in pairs) <= loss.delta_atto / 1e18


def half(rate: Rate, delta_atto: int) -> int:
    """τ of ln(1/δ) / 2."""
    return cached_margin(rate, delta_atto) // 2


def none(rate: Rate, delta_atto: int) -> int:  # noqa: ARG001
    return 0


def unmultiplied(above: int, most: int) -> int:
    """B = a instead of 4a."""
    return min(max(1, above), most)


@pytest.mark.parametrize("loss", LOSSES[2:], ids=str)
@pytest.mark.parametrize(
    "wrong",
    [{"margin": half}, {"margin": none}, {"second_order": unmultiplied}],
    ids=["half of τ", "no τ", "B = a"],
)
def test_smaller_margins_and_bounds_are_rejected(wrong: dict[str, Any], loss: PrivacyLoss) -> None:
    rules = replace(rules_of(16, loss), **wrong)
    assert max(divergence(p, q, rules) for p, q in admitted()) > loss.delta_atto / 1e18


def test_the_release_has_this_law() -> None:
    """Less than one false alarm in 10⁶ runs."""
    edges = [(a, b) for a in range(5) for b in range(a)][1:]
    records, dataset = graph(6, edges), graph_dataset(6)
    loss = PrivacyLoss.parse("6", "0.2")
    seeded = context(records, dataset, loss, SeededRandomness(17))
    plan = TwoTriangles().plan(dataset, loss.epsilon_nano)
    measured = TwoTriangles().measure(seeded, plan)
    assert measured.support is not None
    drawn = [int(NoisyLocalSensitivity().release(TwoTriangles(), seeded)) for _ in range(600)]
    state, rules = (measured.value, *measured.support[:2]), rules_of(6, loss)
    answers = measured.value + np.arange(-400, 401)
    law = answer_law(state, rules, answers)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    cuts = measured.value + np.arange(-24, 25, 6)
    parts = np.searchsorted(cuts, answers, side="right")
    observed = np.bincount(np.searchsorted(cuts, drawn, side="right"), minlength=len(cuts) + 1)
    expected = np.bincount(parts, weights=law, minlength=len(cuts) + 1)
    assert p_value(observed, expected / expected.sum()) > 1e-6
    # The test can fail: it rejects a law of the answers that is shifted by six steps.
    moved = np.bincount(np.minimum(parts + 1, len(cuts)), weights=law, minlength=len(cuts) + 1)
    assert p_value(observed, (moved + 0.02) / (moved + 0.02).sum()) < 1e-6
