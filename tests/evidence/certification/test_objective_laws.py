"""The exact law of selections by several objectives stays within e^ε, in rationals.

As in ``test_laws``: coarse grids of scores, every p = e^−λ a rational. Draws that are scored anew
are judged as what leaves the service: the ordered answer.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import Objective
from mechanisms.selection import SELECTORS, Selector
from tests.evidence.certification import checks
from tests.evidence.certification.family import Universe
from tests.evidence.certification.objectives import (
    Measurements,
    measurements,
    objectives_of,
    pareto,
    weighted,
)
from tests.evidence.certification.test_objectives import made_up
from tests.evidence.certification.universes import FAMILIES

P = [Fraction(1, 3), Fraction(9, 10)]

every_selector = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
every_sensitivity = pytest.mark.parametrize("sensitivity", list(Sensitivity))


def made_up_objectives(seed: int) -> tuple[Universe, dict[str, Objective]]:
    universe, (first, second, third) = made_up(seed, 3)
    return universe, {
        "weighted_sum": weighted((first, 2), (second, -3)),
        "pareto": pareto(first, second, passes=3),
        "pareto of three": pareto(first, second, third, passes=3),
        "pareto of a sum": pareto(weighted((first, 1), (second, -1)), third, passes=3),
    }


def judge(readings: Measurements, score_bits: int) -> None:
    """Fails unless every selector is private on these scores."""
    scores, steps = readings.scores(score_bits), 2 << score_bits
    for selector, p in product(SELECTORS.values(), P):
        law = selector.probabilities
        breach = checks.privacy_breach(scores, readings.universe.pairs, law, p, steps)
        assert breach is None, (selector.name, p, score_bits)


@every_sensitivity
def test_selections_by_made_up_utilities(sensitivity: Sensitivity) -> None:
    for seed in range(2000, 2008):
        universe, objectives = made_up_objectives(seed)
        for objective in objectives.values():
            readings = measurements(objective, universe, sensitivity)
            for score_bits in (0, 1):
                judge(readings, score_bits)


@every_sensitivity
@pytest.mark.parametrize("kind, relation", FAMILIES)
def test_selections_by_registered_utilities(
    kind: str, relation: object, sensitivity: Sensitivity
) -> None:
    family = FAMILIES[kind, relation]  # type: ignore[index]
    for size in family.tiny:
        universe = family.build(*size)
        for objective in objectives_of(kind, passes=3).values():
            # Scores are rounded to whole units here. Rates and entropies vary so much that finer
            # scores would make the powers in the exact fractions too large.
            judge(measurements(objective, universe, sensitivity), 0)


def ordered_law(readings: Measurements, selector: Selector, p: Fraction) -> list[list[Fraction]]:
    """By dataset: the probability of every ordered pair, the second scored among the rest."""
    laws: list[list[Fraction]] = [[] for _ in readings.each]
    firsts = [selector.probabilities(row, p) for row in readings.scores(0).tolist()]
    for place in range(len(firsts[0])):
        rest = readings.without(place).scores(0).tolist()
        for law, first, row in zip(laws, firsts, rest, strict=True):
            law.extend(first[place] * second for second in selector.probabilities(row, p))
    return laws


def rescored_breach(readings: Measurements, selector: Selector, p: Fraction, steps: int) -> bool:
    laws = ordered_law(readings, selector, p)
    assert all(sum(law) == 1 for law in laws)
    shrink = p**steps
    return any(
        checks.apart(left, right, shrink)
        for x, y in readings.universe.pairs
        for left, right in zip(laws[x], laws[y], strict=True)
    )


@every_selector
@every_sensitivity
def test_two_draws_scored_anew_are_private(sensitivity: Sensitivity, selector: Selector) -> None:
    for seed in range(3000, 3010):
        universe, (first, second) = made_up(seed, 2)
        readings = measurements(pareto(first, second, passes=3), universe, sensitivity)
        for p in P:
            # Each of two draws spends ε/2 at the rate λ = (ε/2) / 2, for scores in whole units. So
            # with p = e^−λ, e^ε is p^−4.
            assert not rescored_breach(readings, selector, p, 4)


def test_two_draws_scored_anew_cost_more_than_one() -> None:
    """The judge has teeth: at the loss of a single draw some pair must not pass."""
    breaches = 0
    for seed in range(3000, 3010):
        universe, (first, second) = made_up(seed, 2)
        readings = measurements(pareto(first, second, passes=3), universe, Sensitivity.LOCAL)
        breaches += rescored_breach(readings, SELECTORS["exponential"], Fraction(1, 1000), 2)
    assert breaches
