"""Selection inside the evolutionary search stays within its ε, in rationals.

The search releases ordered draws without replacement from fixed scores: they are judged as such, on
all small tables and their neighbours, for every objective and sensitivity that it offers.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.forests import Confusion, confusion
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.rate import Rate
from mechanisms.selection import SELECTORS
from mechanisms.trees.evolutionary import Search, front
from mechanisms.trees.evolutionary.fitness import SENSITIVITIES, Fitness
from mechanisms.trees.evolutionary.front import BITS, Front
from mechanisms.trees.evolutionary.questions import Questions
from mechanisms.trees.evolutionary.tree_forms import flattened
from mechanisms.trees.task import Task
from tests.evidence.certification import checks
from tests.evidence.certification.family import Universe
from tests.evidence.certification.table_universes import hits, table_universe
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE
from tests.support.contexts import context

P = [Fraction(1, 3), Fraction(9, 10)]
WEIGHTS = {"true_positive_rate": Decimal(3), "true_negative_rate": Decimal(2)}
Objective = Literal["pareto", "weighted_sum"]

every_relation = pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
every_objective = pytest.mark.parametrize("objective", ["pareto", "weighted_sum"])
every_sensitivity = pytest.mark.parametrize("sensitivity", SENSITIVITIES)
every_selector = pytest.mark.parametrize("selector", SELECTORS)


def counts_of(universe: Universe) -> list[Confusion]:
    """The counts of four trees that the search may propose, and of one of them twice."""
    pool, counts = [0, 1, 2, 3, 1], []
    for member in universe.members:
        positive, negative = ([hits(member, tree, side) for tree in pool] for side in (True, False))
        right = [np.array([hit for hit, _ in one]) for one in (positive, negative)]
        counts.append(Confusion(*right, positive[0][1], negative[0][1]))
    return counts


def scores(
    universe: Universe, objective: Objective, sensitivity: Sensitivity, score_bits: int
) -> Any:
    """Scores of the trees of ``counts_of`` on every member."""
    fitness = Fitness(objective, WEIGHTS, sensitivity)
    return np.stack(
        [
            fitness.scores(counts, universe.dataset, score_bits, Inline())
            for counts in counts_of(universe)
        ]
    )


@every_relation
@every_objective
@every_sensitivity
@pytest.mark.parametrize("rows", [2, 4, 5])
def test_scores_move_by_one_step_of_the_sensitivity(
    relation: NeighbouringRelation, objective: Objective, sensitivity: Sensitivity, rows: int
) -> None:
    universe = table_universe("trees", relation, rows, 2, 1, 2)
    for score_bits in (0, 2, 20):
        score_rows = scores(universe, objective, sensitivity, score_bits)
        assert checks.largest_change(score_rows, universe.pairs) <= 1 << score_bits


@every_relation
@every_objective
@every_sensitivity
@every_selector
def test_the_draws_of_a_generation_are_private(
    relation: NeighbouringRelation, objective: Objective, sensitivity: Sensitivity, selector: str
) -> None:
    universe = table_universe("trees", relation, 4, 2, 1, 2)
    rows = scores(universe, objective, sensitivity, 0)

    def law(row: Sequence[int], p: Fraction) -> list[Fraction]:
        answers = SELECTORS[selector].ordered_probabilities(row, p, 2, "peeled")
        return [answers[answer] for answer in sorted(answers)]

    for p in P:
        # Each of two draws spends ε/2 at the rate λ = (ε/2) / 2. So with p = e^−λ, e^ε is p^−4.
        assert checks.privacy_breach(rows, universe.pairs, law, p, 4) is None


@every_relation
@pytest.mark.parametrize("sizes", [(1, 1), (7, 2), (3, 1000)])
def test_scores_of_a_front_move_by_one_record(
    relation: NeighbouringRelation, sizes: tuple[int, int]
) -> None:
    """All one way under add_remove, and the step is attained: less of it would not do."""
    universe = table_universe("trees", relation, 4, 2, 1, 2)
    for draw in (1, 2, 3):
        rows = np.stack([Front(sizes).scores(one, draw, 3) for one in counts_of(universe)])
        assert checks.largest_change(rows, universe.pairs) == 1 << BITS
        moved = rows[universe.pairs[:, 1]] - rows[universe.pairs[:, 0]]
        both = (moved > 0).any(axis=1) & (moved < 0).any(axis=1)
        assert both.any() == (relation is REPLACE)


@every_relation
def test_the_sizes_of_a_front_move_by_what_their_noise_covers(
    relation: NeighbouringRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record is in one class; its replacement may be in the other."""
    universe, laws = table_universe("trees", relation, 4, 2, 1, 2), list[Any]()

    def without_noise(sizes: Any, law: Any, _: Any) -> Any:
        laws.append(law)
        return sizes

    monkeypatch.setattr(front, "noisy", without_noise)
    loss = PrivacyLoss(10**9)
    (step,) = Front().first_steps(universe.dataset, loss)
    assert step.loss == loss
    at = [context(records, universe.dataset, loss) for records in universe.records]
    released = [Front().released(*pair).sizes for pair in zip(at, counts_of(universe), strict=True)]
    # A class without records gets the size 1, which can only bring the sizes of two neighbours
    # nearer.
    exact = np.array([(one.positives, one.negatives) for one in counts_of(universe)])
    assert np.array_equal(released, np.maximum(exact, 1))
    moved = np.abs(exact[universe.pairs[:, 0]] - exact[universe.pairs[:, 1]]).sum(axis=1).max()
    assert moved * laws[0].exponent() == 1
    # If a record is replaced, the check must reject noise that suffices only for a removed record.
    if relation is REPLACE:
        assert moved * Rate.of_counts(loss.epsilon_nano).exponent() > 1


@every_relation
@every_selector
def test_the_draws_of_a_front_are_private(relation: NeighbouringRelation, selector: str) -> None:
    """Two draws without replacement, in whole units of the score's step."""
    universe, unit = table_universe("trees", relation, 4, 2, 1, 2), 1 << BITS
    # With equal sizes of both classes, hits of both count one unit each. So scores are whole units
    # and laws are exact fractions.
    rows = np.stack([Front((1, 1)).scores(one, 1, 1) // unit for one in counts_of(universe)])

    def law(row: Sequence[int], p: Fraction) -> list[Fraction]:
        answers = SELECTORS[selector].ordered_probabilities(row, p, 2, "peeled")
        return [answers[answer] for answer in sorted(answers)]

    # If all scores move one way (add/remove), a draw changes probabilities by one factor of p =
    # e^−λ at most, else (replace) by two.
    most = 4 if relation is REPLACE else 2
    for p in P:
        assert checks.privacy_breach(rows, universe.pairs, law, p, most) is None
    assert checks.privacy_breach(3 * rows, universe.pairs, law, P[1], most) is not None


def test_borrowed_sensitivity_is_caught() -> None:
    """Scores of three times the sensitivity must not pass: the judge has teeth."""
    universe = table_universe("trees", ADD_REMOVE, 4, 2, 1, 2)
    rows = scores(universe, "weighted_sum", Sensitivity.LOCAL, 0)
    law = SELECTORS["exponential"].probabilities
    assert checks.privacy_breach(3 * rows, universe.pairs, law, Fraction(1, 10), 2) is not None


def test_the_trees_of_the_universe_are_what_the_search_counts() -> None:
    universe = table_universe("trees", ADD_REMOVE, 4, 2, 1, 2)
    questions = Questions(Task.of(universe.dataset, ("A",), "C"))
    trees = [((0, 0), yes == "0", no == "0") for yes, no in product("01", repeat=2)]
    forest = flattened(trees, questions, 0)
    for member, records in zip(universe.members[::20], universe.records[::20], strict=True):
        counts = confusion(records, forest)  # type: ignore[arg-type]
        for tree in range(4):
            assert (int(counts.true_positives[tree]), counts.positives) == hits(member, tree, True)
            assert (int(counts.true_negatives[tree]), counts.negatives) == hits(member, tree, False)


@pytest.mark.parametrize(
    "generations, selected, outputs, draws, calls", [(3, 3, 3, 12, 4), (2, 20, 1, 41, 3)]
)
def test_the_printed_budget_would_be_spent_many_times(
    generations: int, selected: int, outputs: int, draws: int, calls: int
) -> None:
    """As printed every draw, or every call, has all of ε; here all of them together have it."""
    universe = table_universe("trees", ADD_REMOVE, 2, 2, 1, 2)
    options = Search(
        task=Task.of(universe.dataset, ("A",), "C"),
        fitness=Fitness("pareto", WEIGHTS, Sensitivity.LOCAL),
        selector=SELECTORS["permute_and_flip"],
        positive_class="0",
        population=30,
        generations=generations,
        selected=selected,
        outputs=outputs,
        initial_depth=1,
        max_depth=1,
    )
    loss = PrivacyLoss(10**9 + 7)
    assert (sum(options.draws), len(options.losses(loss))) == (draws, calls)
    assert sum(options.losses(loss), PrivacyLoss(0)) == loss
    printed = [loss * drawn for drawn in options.draws]
    assert sum(printed, PrivacyLoss(0)) == loss * draws
