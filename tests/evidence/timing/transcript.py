"""Fixes what an adaptive query releases inside, so that its work on two datasets is comparable.

Later steps of a tree may depend on earlier releases of it, because adaptive composition pays for
all of them. Each release is computed as ever, for its work, and then replaced by a public value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

from mechanisms.trees.id3.split_rule import SplitRule

#: Public counts that replace the noisy ones in turn: a tree node with the large count is split, one
#: with the small count is not.
_LARGE, _SMALL = 10**9, 0


#: The modules whose noisy counts decide later steps of the same query.
_RELEASES = ("trees.id3.grow", "distances.tables")
#: The functions that add noise to counts.
_NOISES = {"noisy", "discrete_laplace", "discrete_gaussian"}


@contextmanager
def fixed() -> Iterator[None]:
    """Every second node of a tree is split, by its first remaining attribute; pairs are alike."""
    choose = SplitRule.choose

    def places(rule: SplitRule, nodes: Any, context: Any) -> list[int]:
        return [0 for _ in choose(rule, nodes, context)]

    with ExitStack() as stack:
        stack.enter_context(patch.object(SplitRule, "choose", places))
        for name in _RELEASES:
            module = import_module(f"mechanisms.{name}")
            for noise in vars(module).keys() & _NOISES:
                release = getattr(module, noise)
                stack.enter_context(patch.object(module, noise, replaced(release)))
        yield


def replaced(release: Callable[..., Any]) -> Callable[..., Any]:
    """The same work with public counts as its result."""

    def counts(values: Any, *rest: Any) -> Any:
        release(values, *rest)
        return np.resize(np.array([_LARGE, _SMALL]), values.shape)

    return counts
