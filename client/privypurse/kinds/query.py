"""A query as the client sends it, and what the calls of all kinds share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from privypurse.amounts import Number
from privypurse.levels import Columns

A = TypeVar("A")

#: A utility by name, or ``{"name": …, "weight": …}``, or for a Pareto score also
#: ``{"weighted_sum": [utilities], "name": …}``.
Utility = str | Mapping[str, Any]
Selector = Literal["permute_and_flip", "exponential"]
Sensitivity = Literal["global", "local", "flattened", "shifted"]


@dataclass(frozen=True)
class Query(Generic[A]):
    """A query without its dataset and price; ``read`` turns a reply into the answer."""

    body: Mapping[str, Any]
    read: Callable[[Mapping[str, Any], Columns], A]
    #: Whether ``read`` needs the public description of the table.
    described: bool = False


class Call(ABC):
    """The base of the calls of single kinds, which are methods of ``PrivyPurse``."""

    @abstractmethod
    def ask(
        self,
        dataset: str,
        query: Query[A],
        *,
        epsilon: Number,
        key: str | None = None,
        timeout: float | None = None,
    ) -> A:
        """The answer to one query, charged ``epsilon`` exactly and once."""


def members(utilities: Utility | Sequence[Utility]) -> list[Mapping[str, Any]]:
    """One utility or several, as a query names them."""
    several = [utilities] if isinstance(utilities, (str, Mapping)) else utilities
    return [{"name": one} if isinstance(one, str) else one for one in several]
