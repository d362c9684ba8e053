"""Certification of distances by enumeration: every pair of neighbouring tables of small universes.

The numbers are entropies, mutual information and its sensitivity functions, tables of counts, the
counts from which clusterings start, and the counts and sums of Lloyd's iterations. Each differs
between neighbours by at most the sensitivity that its noise is scaled to. A sensitivity that is
called exact is attained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.clustering import starts
from mechanisms.clustering.encoding import Encoding, one_hot
from mechanisms.clustering.lloyd import Rates, exact_sums, noise_of
from mechanisms.distances.context_scores import largest_change
from mechanisms.distances.contexts import ContextSampler, target_entropies
from mechanisms.distances.entropies import entropy_grid
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.noise.rate import Rate
from mechanisms.selection import SELECTORS
from mechanisms.selection.selector import Selector
from mechanisms.utilities.information_gain import InformationGain
from tests.evidence.certification import checks
from tests.evidence.certification.distance_universes import (
    Universe,
    all_pairs,
    context_scores,
    dampening,
    plan_of,
    universe,
)
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE
from tests.support.contexts import context as context_of

#: The small universes of tables: the neighbouring relation, the number of rows, and the numbers of
#: levels (possible values) of two or three attributes and of the target.
SIZES = [
    (REPLACE, 1, 2, 2, 2), (REPLACE, 2, 2, 2, 2), (REPLACE, 3, 2, 2, 2), (REPLACE, 4, 2, 2, 2),
    (REPLACE, 3, 3, 2, 2), (REPLACE, 3, 2, 2, 3), (REPLACE, 6, 2, 1, 2), (REPLACE, 7, 2, 1, 2),
    (REPLACE, 5, 1, 2, 3), (REPLACE, 2, 2, 2, 2, 2), (REPLACE, 3, 2, 2, 2, 2),
    (ADD_REMOVE, 1, 2, 2, 2), (ADD_REMOVE, 4, 2, 2, 2), (ADD_REMOVE, 3, 3, 2, 2),
    (ADD_REMOVE, 3, 2, 2, 3), (ADD_REMOVE, 7, 2, 1, 2), (ADD_REMOVE, 5, 1, 2, 3),
    (ADD_REMOVE, 3, 2, 2, 2, 2),
]  # fmt: skip
CONTEXTS = ["max_relevance", "max_dependency"]
P = [Fraction(1, 2), Fraction(9, 10)]


def size_of(space: Universe, context: str) -> int:
    """Sets of two where there are three to choose from."""
    return 2 if context == "max_dependency" and len(space.levels) == 4 else 1


#: Tables with four attributes have many sets of attributes to enumerate, so they are slow tests.
every_universe = pytest.mark.parametrize(
    "size",
    [pytest.param(s, marks=[pytest.mark.slow] if len(s) > 5 else []) for s in SIZES],
    ids=lambda s: "-".join(map(str, s)),
)
every_selector = pytest.mark.parametrize("selector", SELECTORS.values(), ids=lambda s: s.name)


def entropies(space: Universe) -> checks.Array:
    """The 2m − 1 entropies of ``mean_su`` for every member, in steps."""
    plan = plan_of(space, "mean_su", Sensitivity.GLOBAL)
    return np.array([target_entropies(records, plan, Inline()) for records in space.records])


@pytest.mark.parametrize("rows", range(1, 8))
@pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
def test_entropies_move_by_exactly_their_sensitivity(relation: str, rows: int) -> None:
    """Together too: all 2m − 1 of them at once move by 2m − 1 sensitivities."""
    space = (
        universe(REPLACE, rows, 2, 1, 2)
        if relation is REPLACE
        else universe(ADD_REMOVE, rows + 1, 2, 1, 2, least=rows)
    )
    listed = entropies(space)
    moved = np.abs(listed[space.pairs[:, 0]] - listed[space.pairs[:, 1]])
    bound = entropy_grid(space.dataset).sensitivity
    assert moved.max(initial=0) <= bound
    if rows > 1 or relation is ADD_REMOVE:
        # The largest move of an entropy may be up to two grid steps below its bound: one step for
        # rounding down, and one for the slack in the rounded table Φ of x·log₂x.
        assert moved.max() >= bound - 2
    # Attribute B has one level, so H(B) is always 0. The other four of the five entropies move:
    # H(A), H(C), H(A, C), and H(B, C), which equals H(C).
    assert moved.sum(axis=1).max(initial=0) <= 4 * bound
    if rows > 1:
        assert moved.sum(axis=1).max() >= 4 * (bound - 2)


@every_universe
def test_entropies_of_several_attributes(size: tuple[int, ...]) -> None:
    relation, rows, *levels = size
    space = universe(relation, rows, *levels, least=min(rows, 1))  # type: ignore[arg-type]
    listed = entropies(space)
    moved = np.abs(listed[space.pairs[:, 0]] - listed[space.pairs[:, 1]])
    assert moved.max(initial=0) <= entropy_grid(space.dataset).sensitivity


@every_universe
@pytest.mark.parametrize("context", CONTEXTS)
def test_global_scores_move_by_one_unit(size: tuple[int, ...], context: str) -> None:
    """Under add/remove one way only: a record that comes never raises any score."""
    space = universe(*size)  # type: ignore[arg-type]
    scores = context_scores(space, context, Sensitivity.GLOBAL, size_of(space, context), 8)
    x, y = space.pairs.T
    moved = scores[y] - scores[x]
    assert np.abs(moved).max(initial=0) <= 1 << 8
    if space.dataset.neighbouring is ADD_REMOVE:
        more = np.where((space.sizes()[y] > space.sizes()[x])[:, None], moved, -moved)
        assert more.max(initial=0) <= 0


@pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
def test_the_bound_on_information_is_attained(relation: str) -> None:
    """A set of attributes too: no more than one attribute alone."""
    space = universe(relation, 4, 2, 2, 2)  # type: ignore[arg-type]
    cap = largest_change(4, InformationGain().table_grid(4))
    for context in CONTEXTS:
        utilities = context_scores(space, context, Sensitivity.GLOBAL, size_of(space, context), 0)
        assert np.unique(utilities).size > 1
        scores = context_scores(space, context, Sensitivity.GLOBAL, size_of(space, context), 20)
        assert checks.largest_change(scores, space.pairs) == 1 << 20
    assert cap == round((8 - 3 * np.log2(3)) * 2**32)


@every_universe
@pytest.mark.parametrize("context", CONTEXTS)
def test_dampening_is_admissible(size: tuple[int, ...], context: str) -> None:
    """(A1) and (A2) for all neighbours, candidates and distances; D moves by one unit at most."""
    space = universe(*size)  # type: ignore[arg-type]
    horizon = size[1] + 3
    utilities, delta = dampening(space, context, size_of(space, context), horizon)
    together = np.broadcast_to(delta, (*delta.shape[:2], utilities.shape[1]))
    assert checks.admissibility_breach(utilities, together, space.pairs) is None
    assert (delta >= 1).all()
    assert (np.diff(delta, axis=1) >= 0).all()
    scores = context_scores(space, context, Sensitivity.LOCAL, size_of(space, context), 8)
    assert checks.largest_change(scores, space.pairs) <= 1 << 8


@pytest.mark.parametrize("rows", [3, 5, 7])
def test_dampening_follows_the_exact_local_sensitivity(rows: int) -> None:
    """Under add/remove: the most that q moves at once in any table t records away, of all tables
    of so few records. Rounding adds 2t + 1 steps and no more."""
    space = universe(ADD_REMOVE, 7, 2, 2)
    grid = InformationGain().table_grid(7)
    public = plan_of(space, "max_relevance", Sensitivity.LOCAL, 1)
    x, y = space.pairs.T
    drawings = [ContextSampler(records, public, Inline()) for records in space.records]
    q = np.array([drawing.candidates(1)[1][0] for drawing in drawings])
    exact = np.zeros(len(q), np.int64)
    for one, other in ((x, y), (y, x)):
        np.maximum.at(exact, one, np.abs(q[one] - q[other]))
    for t in range(7 - rows):
        for number in np.flatnonzero(space.sizes() == rows):
            # A utility is N·log₂|Y| plus q = −N·H(Y | X), and a new record moves both terms. With
            # ``unit`` 0 the sensitivity function δ bounds the change of q alone.
            delta = replace(drawings[number].measured(1)[1], unit=0)
            bound = int(delta.at(np.array([t]))[0])
            cap = largest_change(7, grid)
            assert exact[number] <= bound <= min(exact[number] + 2 * t + 2, cap)
        nearer = exact.copy()
        for one, other in ((x, y), (y, x)):
            np.maximum.at(nearer, one, exact[other])
        exact = nearer


@every_selector
@pytest.mark.parametrize(
    ("bits", "p"),
    [
        (0, P[0]),
        (2, P[1]),
        # The slow cases combine each rounding of the scores (to 0 or 2 fractional bits) with the
        # rate p that the fast cases use for the other rounding.
        pytest.param(0, P[1], marks=pytest.mark.slow),
        pytest.param(2, P[0], marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("sensitivity", [Sensitivity.GLOBAL, Sensitivity.LOCAL])
@pytest.mark.parametrize("size", [s for s in SIZES if len(s) == 5],
                         ids=lambda s: "-".join(map(str, s)))  # fmt: skip
def test_the_law_of_contexts_is_private(
    size: tuple[int, ...], sensitivity: Sensitivity, bits: int, p: Fraction, selector: Selector
) -> None:
    """P_x ≤ e^ε · P_y in rationals. Global scores under add/remove run at twice the rate."""
    space = universe(*size)  # type: ignore[arg-type]
    doubled = sensitivity is Sensitivity.GLOBAL and space.dataset.neighbouring is ADD_REMOVE
    steps = (1 if doubled else 2) << bits
    for context in CONTEXTS:
        scores = context_scores(space, context, sensitivity, size_of(space, context), bits)
        law = selector.probabilities
        assert checks.privacy_breach(scores, space.pairs, law, p, steps) is None


@every_selector
def test_the_law_of_two_draws_is_private(selector: Selector) -> None:
    """Ordered answers, k = 2 in one shot: e^ε = p^(−2·2^b) one way, p^(−4·2^b) both ways."""
    cases = [(ADD_REMOVE, "global"), (ADD_REMOVE, "local"), (REPLACE, "global")]
    for relation, sensitivity in cases:
        space = universe(relation, 2, 2, 2, 2, 2)
        scores = context_scores(space, "max_relevance", Sensitivity(sensitivity), 2, 1)
        one_way = sensitivity == "global" and relation is ADD_REMOVE
        steps = 2 * (1 if one_way else 2) << 1
        law = ordered(selector)
        assert checks.privacy_breach(scores, space.pairs, law, Fraction(1, 2), steps) is None


def ordered(selector: Selector) -> Callable[[Sequence[int], Fraction], list[Fraction]]:
    def law(scores: Sequence[int], p: Fraction) -> list[Fraction]:
        answers = selector.ordered_probabilities(scores, p, 2, "one_shot")
        return [answers[answer] for answer in sorted(answers)]

    return law


@every_universe
def test_tables_move_by_what_their_noise_covers(size: tuple[int, ...]) -> None:
    """P tables together by P in L1 under add/remove and 2P under replace, and no less."""
    space = universe(*size)  # type: ignore[arg-type]
    listed = all_pairs(space)
    plan = plan_of(space, "baseline", Sensitivity.GLOBAL)
    count = len(list(combinations(space.levels, 2)))
    cells = np.array([np.concatenate([t.ravel() for t in p.tables.values()]) for p in listed])
    assert len(np.unique([[t.shape for t in p.tables.values()] for p in listed], axis=0)) == 1
    moved = np.abs(cells[space.pairs[:, 0]] - cells[space.pairs[:, 1]]).sum(axis=1)
    rate = plan.table_noise(PrivacyLoss(10**9), count)
    gaussian = plan.table_noise(PrivacyLoss(0, 0, 10**15, 1), count)
    assert isinstance(rate, Rate)
    assert isinstance(gaussian, Deviation)
    assert moved.max() * rate.exponent() <= 1
    # Each cell moves by at most 1, so the sum of the changes is also the sum Q of their squares,
    # and Q/(2σ²) must be at most ρ = 1.
    assert moved.max() <= 2 * gaussian.square
    if min(space.levels) > 1:
        assert moved.max() * rate.exponent() == 1
        assert moved.max() > 1.99 * gaussian.square


def scattered(space: Universe) -> Encoding:
    """Coordinates of either sign and unequal length."""
    rng = np.random.default_rng(5)
    attributes = plan_of(space, "baseline", Sensitivity.GLOBAL).attributes
    vectors = tuple(rng.integers(-60, 60, (len(a.levels), 2)) for a in attributes)
    return Encoding(attributes, vectors, 4)


@pytest.mark.parametrize(
    "size", [s for s in SIZES if s[1] > 1], ids=lambda s: "-".join(map(str, s))
)
def test_counts_and_sums_of_clusters_move_by_what_their_noise_covers(
    size: tuple[int, ...],
) -> None:
    """λ_counts·|Δcounts| + λ_sums·|Δsums| ≤ ε, empty clusters included; nearly attained."""
    space = universe(*size)  # type: ignore[arg-type]
    moves = 2 if space.dataset.neighbouring is REPLACE else 1
    attributes = plan_of(space, "baseline", Sensitivity.GLOBAL).attributes
    for encoding in (one_hot(attributes, 4), scattered(space)):
        low, high = encoding.box
        centres = np.stack([low, high, (low + high) / 2, high + 1])
        released = [exact_sums(r, encoding, centres, Inline()) for r in space.records]
        counts = np.array([sizes for sizes, _ in released])
        sums = np.array([sums.ravel() for _, sums in released])
        assert counts.shape[1] == 4
        rates = Rates.of(PrivacyLoss(10**9), encoding.reach, encoding.bits, moves)
        x, y = space.pairs.T
        spent = np.abs(counts[x] - counts[y]).sum(axis=1) * float(rates.counts.exponent())
        spent += np.abs(sums[x] - sums[y]).sum(axis=1) * float(rates.sums.exponent())
        assert spent.max() <= 1 + 1e-12
        if moves == 1:
            assert spent.max() >= 1 - 1e-6
        # Gaussian noise spends ρ = Σ change²/(2σ²), summed over all counts and sums.
        noise = noise_of(PrivacyLoss(0, 0, 10**15, 1), encoding, moves)
        in_rho = _squared(counts, x, y) / float(2 * noise.counts.square)
        in_rho += _squared(sums, x, y) / float(2 * noise.sums.square)
        assert in_rho.max() <= 1 + 1e-12
        if moves == 1:
            assert in_rho.max() >= 0.99
        # If a record is replaced, the check must reject noise that suffices only for a removed
        # record.
        if moves == 2 and min(space.levels) > 1:
            less = noise_of(PrivacyLoss(0, 0, 10**15, 1), encoding, 1)
            in_rho = _squared(counts, x, y) / float(2 * less.counts.square)
            in_rho += _squared(sums, x, y) / float(2 * less.sums.square)
            assert in_rho.max() > 1


@every_universe
def test_the_counts_that_clusters_begin_from_move_by_what_their_noise_covers(
    size: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One count of every attribute by 1, of two records under replace; in ε and in ρ."""
    space = universe(*size)  # type: ignore[arg-type]
    moves = 2 if space.dataset.neighbouring is REPLACE else 1
    attributes = plan_of(space, "baseline", Sensitivity.GLOBAL).attributes
    laws: list[Any] = []

    def without_noise(counts: Any, law: Any, _: Any) -> Any:
        laws.append(law)
        return counts

    monkeypatch.setattr(starts, "noisy", without_noise)

    def released(loss: PrivacyLoss) -> np.ndarray[Any, Any]:
        every = (context_of(records, space.dataset, loss) for records in space.records)
        margins = (starts.noisy_margins(one, attributes, moves) for one in every)
        return np.array([np.concatenate(one.counts) for one in margins])

    x, y = space.pairs.T
    counts = released(PrivacyLoss(10**9))
    spent = np.abs(counts[x] - counts[y]).sum(axis=1) * laws[-1].exponent()
    in_rho = _squared(released(PrivacyLoss(0, 0, 10**15, 1)), x, y) / float(2 * laws[-1].square)
    assert spent.max() <= 1
    assert in_rho.max() <= 1 + 1e-12
    if min(space.levels) > 1:
        assert spent.max() == 1
        assert in_rho.max() >= 0.99
    # The check must reject noise made for the counts of a single attribute if those of all are
    # released.
    less = starts.margin_law(PrivacyLoss(10**9), moves)
    assert isinstance(less, Rate)
    assert np.abs(counts[x] - counts[y]).sum(axis=1).max() * less.exponent() > 1


def _squared(released: np.ndarray[Any, Any], x: Any, y: Any) -> np.ndarray[Any, Any]:
    """The sums of squared changes between neighbours, shape (pairs,)."""
    changes: np.ndarray[Any, Any] = ((released[x] - released[y]).astype(float) ** 2).sum(axis=1)
    return changes
