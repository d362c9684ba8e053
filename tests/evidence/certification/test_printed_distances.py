"""Known breaches of distances: what the paper prints or its code does must be rejected.

The same checks as for the formulas in use; each finds its counterexample by itself.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, floor, ldexp

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.clustering.encoding import one_hot
from mechanisms.clustering.lloyd import Rates, lloyd
from mechanisms.distances.context_scores import largest_change
from mechanisms.distances.contexts import target_entropies
from mechanisms.distances.entropies import entropy_grid
from mechanisms.distances.metric import distance_matrix, embedding
from mechanisms.distances.uncertainty import at_least_mean, symmetric_uncertainty, table_uncertainty
from mechanisms.model.domains import CategoricalAttribute, Dataset, TableDomain
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from mechanisms.utilities.information_gain import InformationGain
from tests.evidence.certification import checks, printed_distances
from tests.evidence.certification.distance_universes import (
    all_pairs,
    context_scores,
    plan_of,
    universe,
)
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness


@pytest.mark.parametrize("rows", range(2, 8))
def test_printed_sensitivities_are_rejected_as_not_attained(rows: int) -> None:
    """Theorems 5 to 7: no breach, but a mechanism that spends at most half of its loss. No table of
    so few rows moves by as much, while what is in use is reached to two steps of its grid."""
    space = universe(REPLACE, rows, 2, 1, 2)
    x, y = space.pairs.T
    public = plan_of(space, "mean_su", Sensitivity.GLOBAL)
    steps = np.array([target_entropies(records, public, Inline()) for records in space.records])
    grid = entropy_grid(space.dataset)
    entropy = ldexp(int(np.abs(steps[x] - steps[y]).max()), -grid.bits)
    printed = printed_distances.printed_entropy_sensitivity(rows)
    slack = ldexp(2, -grid.bits)
    assert ldexp(grid.sensitivity, -grid.bits) <= entropy + slack
    assert entropy + slack < printed
    # For q = −N·H(Y | X) the paper prints 2N times the sensitivity of an entropy. One change of a
    # table moves the score by less than half of that.
    bits = InformationGain().table_grid(rows).bits
    cap = largest_change(rows, InformationGain().table_grid(rows))
    score = context_scores(space, "max_relevance", Sensitivity.GLOBAL, 1, 20)
    moved = ldexp(int(np.abs(score[x] - score[y]).max()) * cap, -20 - bits)
    assert ldexp(cap, -bits) == pytest.approx(moved)
    assert moved < rows * printed_distances.printed_information_sensitivity(rows) / 2


@pytest.mark.parametrize(
    "rows, printed",
    [(2, 1.22134752), (5, 0.75292463), (10, 0.47646231), (100, 0.08086551), (1000, 0.01140848)],
)
def test_printed_sensitivities_are_those_of_the_paper(rows: int, printed: float) -> None:
    assert printed_distances.printed_entropy_sensitivity(rows) == pytest.approx(printed)
    assert printed_distances.printed_information_sensitivity(rows) == pytest.approx(2 * printed)


def test_the_factor_of_two_cannot_go_under_replace() -> None:
    """exp(ε·q/φ(N)) is private under add/remove alone: replacing moves scores both ways, and so
    does cutting a table off at N rows, where a record that comes pushes another one out."""
    law = SELECTORS["exponential"].probabilities
    for relation, rejected in ((REPLACE, True), (ADD_REMOVE, False)):
        space = universe(relation, 4, 2, 2, 2)
        scores = context_scores(space, "max_relevance", Sensitivity.GLOBAL, 1, 2)
        breach = checks.privacy_breach(scores, space.pairs, law, Fraction(1, 1000), 1 << 2)
        assert (breach is not None) == rejected


def test_dampened_scores_need_the_factor_of_two_under_add_remove() -> None:
    """u = N·(log₂|Y| − H) moves both ways, as the row count moves with it."""
    space = universe(ADD_REMOVE, 4, 2, 2, 2)
    scores = context_scores(space, "max_relevance", Sensitivity.LOCAL, 1, 2)
    law = SELECTORS["exponential"].probabilities
    assert checks.privacy_breach(scores, space.pairs, law, Fraction(1, 2), 1 << 2) is not None


@pytest.mark.parametrize("rows", range(2, 8))
def test_symmetric_uncertainty_moves_by_one(rows: int) -> None:
    """However many records: Laplace noise of any smaller scale on SU itself is a breach."""
    space = universe(REPLACE, rows, 2, 1, 2)
    uncertainty = np.array([[table_uncertainty(t.of(0, 2))] for t in all_pairs(space)])
    x, y = space.pairs.T
    assert np.abs(uncertainty[x] - uncertainty[y]).max() == 1


def test_exact_denominators_are_rejected() -> None:
    """The authors' code: all records equal give the context {A, B} for sure, one that differs
    makes it an accident. At ε = 1 for each entropy the odds are far beyond e³."""
    rows = 7
    space = universe(REPLACE, rows, 2, 2, 2)
    grid = entropy_grid(space.dataset)
    equal, differs = (rows, *[0] * 7), (rows - 1, *[0] * 6, 1)
    pair = sorted(space.members.index(member) for member in (equal, differs))
    assert pair in space.pairs.tolist()
    h = Fraction(grid.sensitivity)
    # The rate λ per step of the grid is such that one entropy costs ε = 1. p = e^−λ is rounded
    # down, which favours the printed code.
    p = Fraction(floor(10**6 * exp(-1 / grid.sensitivity)), 10**6)
    zero = Fraction(0)
    certain = printed_distances.context_with_exact_denominators(((zero, zero), zero), p)
    accident = printed_distances.context_with_exact_denominators(((h, h), h), p)
    assert certain == 1
    assert float(certain / accident) > np.exp(3) * 10


def test_shapes_from_observed_values_are_rejected() -> None:
    """The authors' cross tables: their size alone tells neighbours apart, for N = 2 already."""
    space = universe(REPLACE, 2, 2, 2, 2)
    observed = [printed_distances.observed_shape(r, "A", "C") for r in space.records]
    assert any(observed[x] != observed[y] for x, y in space.pairs)
    ours = {tables.of(0, 2).shape for tables in all_pairs(space)}
    assert ours == {(2, 2)}


def test_skipping_empty_clusters_is_rejected() -> None:
    """60 equal points against 59 and one far away: a centre that stays tells which, for sure."""
    attributes = (CategoricalAttribute("A", ("0", "1")),)
    encoding = one_hot(attributes, 4)
    centres = np.array([[1.0, 0.0], [0.3, 0.7]])
    dataset = Dataset("one", ADD_REMOVE, TableDomain(attributes, max_rows=60))
    equal, far = (
        TableRecords({"A": np.array([0] * (60 - n) + [1] * n, np.uint8)}, {}) for n in (0, 1)
    )
    skipping = printed_distances.noised_clusters
    assert skipping(equal, encoding, centres) == (0,)
    assert skipping(far, encoding, centres) == (0, 1)
    stayed = 0
    for seed in range(100):
        for records in (equal, far):
            loss, randomness = PrivacyLoss.parse("0.5"), SeededRandomness(seed)
            seeded = context(records, dataset, loss, randomness)
            moved = lloyd(seeded, encoding, centres, iterations=1, moves=1).points
            stayed += bool((moved[1] == centres[1]).all())
    assert stayed == 0


def test_replacing_in_two_clusters_costs_twice() -> None:
    """The rate of add/remove does not cover a replacement that changes clusters."""
    rates = Rates.of(PrivacyLoss(10**9), reach=16, bits=4, moves=1)
    spent = 2 * rates.counts.exponent() + 2 * 16 * rates.sums.exponent()
    assert spent > 1.9


def test_a_mean_of_floats_can_leave_an_empty_context() -> None:
    """Three SU of 0.1 have a mean of 0.10000000000000002 in floats; in rationals all three stay."""
    scores = [0.1, 0.1, 0.1]
    assert sum(scores) / 3 > max(scores)
    assert at_least_mean(dict(enumerate(scores)), Fraction(1)) == (0, 1, 2)
    assert at_least_mean({0: 0.0, 1: 0.0}, Fraction(1)) == (0, 1)


def test_without_clamping_distances_are_unbounded() -> None:
    """Shares (10, −9) of a column (1, −0.9): here negative counts are nothing."""
    column = np.array([[10, -9]])
    shares = column / column.sum()
    assert np.abs(shares[0, 0] - shares[0, 1]) == 19
    assert distance_matrix(embedding([column])).max() <= 1


def test_distances_of_different_values_can_be_zero() -> None:
    """A pseudometric: one level of the context, one record of each value."""
    assert distance_matrix(embedding([np.array([[1, 1]])])).tolist() == [[0, 0], [0, 0]]


def test_printed_probabilities_of_dependency_cannot_be() -> None:
    """Example 2: with three cities −H(Y | S) spans log₂3 at most, and any two probabilities
    differ by a factor of 59 at most; printed are 2·10⁻⁴⁵ and 0.89."""
    span = np.log2(3) / printed_distances.printed_information_sensitivity(80)
    assert np.exp(span / 2) == pytest.approx(59, abs=1)
    assert 0.89 / 2e-45 > 59


def test_uncertainty_is_zero_where_both_are_constant() -> None:
    assert symmetric_uncertainty(0, 0, 0) == 0
