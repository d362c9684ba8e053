"""Fixes what an adaptive query releases inside, so that its work on two datasets is comparable.

Later steps of a tree may depend on earlier releases of it, because adaptive composition pays for
all of them. Each release is computed as ever, for its work, and then replaced by a public value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

from mechanisms.trees.id3.split_rule import SplitRule

#: Counts in turn, with which nodes are split and are not.
_LARGE, _SMALL = 10**9, 0


@contextmanager
def fixed() -> Iterator[None]:
    """Every second node of a tree is split, always by its first remaining attribute."""
    grow = import_module("mechanisms.trees.id3.grow")
    release, choose = grow.discrete_laplace, SplitRule.choose

    def counts(values: Any, *rest: Any) -> Any:
        release(values, *rest)
        return np.resize(np.array([_LARGE, _SMALL]), values.shape)

    def places(rule: SplitRule, nodes: Any, context: Any) -> list[int]:
        return [0 for _ in choose(rule, nodes, context)]

    with (
        patch.object(grow, "discrete_laplace", counts),
        patch.object(SplitRule, "choose", places),
    ):
        yield
