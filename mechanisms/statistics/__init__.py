"""Statistics of tables and graphs, released with noise that may depend on the records."""

from mechanisms.statistics.count import Count
from mechanisms.statistics.graphs import Edges
from mechanisms.statistics.prefix_sum import SmallestSum
from mechanisms.statistics.quantile import Median, Quantile
from mechanisms.statistics.release import MECHANISMS
from mechanisms.statistics.stars import Stars
from mechanisms.statistics.statistic import Statistic
from mechanisms.statistics.sums import Mean, Sum
from mechanisms.statistics.triangles import Triangles, TwoTriangles

__all__ = ["MECHANISMS", "STATISTICS", "Statistic"]

_ALL: tuple[type[Statistic], ...] = (
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
STATISTICS: dict[str, type[Statistic]] = {kind.name: kind for kind in _ALL}
