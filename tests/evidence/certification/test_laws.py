"""The exact law of every selector on neighbouring graphs stays within e^ε, in rationals.

The scores are taken on coarse grids, q = 0 … 2, because their laws are polynomials in p = e^−λ of
degree 2^q times the spread of the scores. Nothing is lost by it: the law knows a score by its
grid alone, λ = ε / 2^{q + 1} stands for any ε as p runs through (0, 1), and that the fine scores
move by at most 2^20 is shown on the same graphs. Every p tried is a rational, hence exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS, Draws, Selector
from mechanisms.utilities import UTILITIES
from tests.evidence.certification import checks
from tests.evidence.certification.family import Size
from tests.evidence.certification.universes import FAMILIES, tabulate_scores, universe_of

P = [Fraction(1, 3), Fraction(9, 10)]
DRAWS: tuple[Draws, ...] = ("peeled", "one_shot")
CERTIFIED = [
    (name, relation)
    for name, utility in UTILITIES.items()
    for relation in sorted(utility.relations)
]
SIZES = [
    pytest.param(name, relation, sizes, id=f"{name}-{relation}-{which}", marks=marks)
    for name, relation in CERTIFIED
    for family in [FAMILIES[UTILITIES[name].candidates, relation]]
    for which, sizes, marks in (
        ("small", family.sizes, ()),
        ("larger", family.larger, (pytest.mark.slow,)),
    )
    if sizes
]

every_selector = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)


@pytest.mark.parametrize("sensitivity", list(Sensitivity))
@pytest.mark.parametrize("name, relation, sizes", SIZES)
def test_every_selection_is_private(
    name: str, relation: NeighbouringRelation, sizes: Sequence[Size], sensitivity: Sensitivity
) -> None:
    direction = UTILITIES[name].direction
    for size, bits in product(sizes, (0, 1, 2)):
        scores = tabulate_scores(name, relation, size, sensitivity, bits, direction)
        pairs = universe_of(name, relation, size).pairs
        for selector, p in product(SELECTORS.values(), P):
            breach = checks.privacy_breach(scores, pairs, selector.probabilities, p, 2 << bits)
            assert breach is None, (size, bits, selector.name, p)


@pytest.mark.parametrize("sensitivity", list(Sensitivity))
@pytest.mark.parametrize("name, relation", CERTIFIED)
def test_every_ordered_pair_is_private(
    name: str, relation: NeighbouringRelation, sensitivity: Sensitivity
) -> None:
    for size in FAMILIES[UTILITIES[name].candidates, relation].tiny:
        scores = tabulate_scores(name, relation, size, sensitivity, 1, UTILITIES[name].direction)
        pairs = universe_of(name, relation, size).pairs
        for selector, draws in product(SELECTORS.values(), DRAWS):
            law = ordered_law(selector, draws)
            # Each of two draws spends ε/2 at the rate λ = ε / (2 · 2^{q + 1}), for scores with q =
            # 1 fractional bits. So with p = e^−λ, e^ε is p^(−2 · 2^{q + 1}).
            breach = checks.privacy_breach(scores, pairs, law, P[0], 2 * (2 << 1))
            assert breach is None, (size, selector.name, draws)


def ordered_law(selector: Selector, draws: Draws) -> checks.Law:
    """The probabilities of all ordered pairs."""

    def law(scores: Sequence[int], p: Fraction) -> list[Fraction]:
        answers = selector.ordered_probabilities(scores, p, 2, draws)
        return [answers[answer] for answer in sorted(answers)]

    return law


def test_a_smaller_loss_is_refused() -> None:
    """The bound is attained in the limit of long odds: a step less of e^ε must not pass."""
    pairs = np.array([[0, 1]])
    tight = np.array([[0, 0, 0, 0, 0, 40], [2, 2, 2, 2, 2, 38]])
    for selector in SELECTORS.values():
        law = selector.probabilities
        assert checks.privacy_breach(tight, pairs, law, P[0], 4) is None
        assert checks.privacy_breach(tight, pairs, law, P[0], 3) is not None


@every_selector
def test_scores_that_move_by_more_than_one_unit_are_refused(selector: Selector) -> None:
    """A cap of a third of Δ: scores move by three units and must not pass for one."""
    scores = tabulate_scores(
        "egocentric_betweenness", NeighbouringRelation.EDGE, (4, 3), Sensitivity.GLOBAL, 1, 1
    )
    pairs = universe_of("egocentric_betweenness", NeighbouringRelation.EDGE, (4, 3)).pairs
    law, p = selector.probabilities, Fraction(1, 10)
    assert checks.largest_change(scores, pairs) == 2
    assert checks.privacy_breach(scores, pairs, law, p, 4) is None
    assert checks.privacy_breach(3 * scores, pairs, law, p, 4) is not None
