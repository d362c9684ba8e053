"""What a front spends its loss on: the size of noise, and the scale of every draw, by relation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.forests import Confusion
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.noise.rate import Rate
from mechanisms.trees.evolutionary import front
from mechanisms.trees.evolutionary.front import BITS, Front
from tests.support.contexts import context
from tests.unit.mechanisms.trees.tables import dataset, people

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
COUNTS = Confusion(np.array([3, 0, 2, 1]), np.array([0, 4, 1, 2]), 3, 4)
LOSS = PrivacyLoss(10**9 + 1)


class LargestScore:
    """A selector without noise, which notes how it is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def top(self, scores: Any, *options: Any, one_way: bool) -> Any:
        bits, loss, k, draws, *_ = options
        self.calls.append((len(scores), bits, loss.epsilon_nano, k, draws, one_way))
        return np.array([int(scores.argmax())])


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_draws_share_the_loss_and_only_added_records_move_one_way(
    relation: NeighbouringRelation,
) -> None:
    selector, public = LargestScore(), replace(dataset(), neighbouring=relation)
    at = context(people(7), public, LOSS)
    chosen = Front((3, 4)).drawn(COUNTS, 3, selector, at)  # type: ignore[arg-type]
    # The first draw ranks trees by true negatives most, the second by both alike, and the last by
    # true positives most. No tree is drawn twice.
    assert chosen == [1, 0, 2]
    one_way = relation is ADD_REMOVE
    third = LOSS.epsilon_nano // 3
    losses = (third, third, LOSS.epsilon_nano - 2 * third)
    expected = [(4 - i, BITS, losses[i], 1, "peeled", one_way) for i in range(3)]
    assert selector.calls == expected


@pytest.mark.parametrize(("relation", "moves"), [(ADD_REMOVE, 1), (REPLACE, 2)])
def test_a_replacement_moves_both_sizes(
    relation: NeighbouringRelation, moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    laws: list[Rate] = []

    def exact(counts: Any, law: Rate, _: Any) -> Any:
        laws.append(law)
        return counts - 5

    monkeypatch.setattr(front, "noisy", exact)
    at = context(people(7), replace(dataset(), neighbouring=relation), LOSS)
    # A noisy size of a class is raised to at least 1 before it is released.
    assert Front().released(at, Confusion(*(np.array([0]),) * 2, 3, 8)) == Front((1, 3))
    (law,) = laws
    assert law.exponent() == Fraction(LOSS.epsilon_nano, 10**9 * moves)
