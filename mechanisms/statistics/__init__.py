"""Statistics of tables and graphs, released with noise that may depend on the records."""

from __future__ import annotations

from typing import Any, Protocol

from mechanisms.statistics.count import Count
from mechanisms.statistics.edges import Edges
from mechanisms.statistics.mean import Mean
from mechanisms.statistics.prefix_sum import SmallestSum
from mechanisms.statistics.quantile import Median, Quantile
from mechanisms.statistics.release import MECHANISMS
from mechanisms.statistics.stars import Stars
from mechanisms.statistics.statistic import Statistic
from mechanisms.statistics.sums import Sum
from mechanisms.statistics.triangles import Triangles
from mechanisms.statistics.two_triangles import TwoTriangles

__all__ = ["MECHANISMS", "STATISTICS", "Statistic"]


class StatisticKind(Protocol):
    """A class of statistics: its description, and a statistic for each choice of parameters."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def source(self) -> str: ...

    def __call__(self, *arguments: Any, **parameters: Any) -> Statistic: ...


_ALL: tuple[StatisticKind, ...] = (
    Count,
    Sum,
    Mean,
    Median,
    Quantile,
    SmallestSum,
    Edges,
    Triangles,
    TwoTriangles,
    Stars,
)
STATISTICS: dict[str, StatisticKind] = {kind.name: kind for kind in _ALL}
