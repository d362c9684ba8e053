"""A universe: a set of datasets, all pairs of neighbours among them, and the candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.records import Records

Array = NDArray[np.int64]
Size = tuple[int, ...]


@dataclass(frozen=True)
class Universe:
    """``records[i]`` describes ``members[i]``; ``pairs`` are all neighbours, shape (m, 2)."""

    dataset: Dataset
    candidates: Candidates
    members: Sequence[Any]
    records: list[Records]
    pairs: Array


@dataclass(frozen=True)
class Family:
    """Universes of one kind; ``build(*size)`` returns one.

    ``larger`` and ``slow`` sizes run under the mark ``slow`` only; the former in every test of
    ``sizes``, the latter where one universe costs little. ``tiny`` ones have few enough candidates
    for the laws of ordered answers.
    """

    build: Callable[..., Universe]
    sizes: list[Size]
    slow: list[Size]
    tiny: list[Size]
    larger: Sequence[Size] = ()
