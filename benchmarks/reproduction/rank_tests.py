"""The statistical tests of the papers, by scipy: differences, orders and ranks.

No p-value is exact where results are sampled; the report shows them rounded, as text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]
LEVEL = 0.05


def greater(pairs: list[tuple[ArrayLike, ArrayLike]]) -> Floats:
    """p-values that the first sample of each pair tends to be larger: one-sided Mann–Whitney U,
    adjusted together by Benjamini and Hochberg."""
    raw = [
        float(stats.mannwhitneyu(one, other, alternative="greater").pvalue) for one, other in pairs
    ]
    return np.asarray(stats.false_discovery_control(raw, method="bh"))


def rising(table: ArrayLike) -> float:
    """p-value of Page's test that values rise along the columns; a row is a block."""
    return float(stats.page_trend_test(table).pvalue)


@dataclass(frozen=True)
class Ranks:
    """Friedman's test of blocks × ways, larger is better, and Nemenyi's critical difference."""

    statistic: float
    p_value: float
    #: The mean rank of each compared method; rank 1 is the best.
    means: Floats
    critical: float

    @classmethod
    def of(cls, table: ArrayLike) -> Ranks:
        values = np.asarray(table, dtype=float)
        blocks, ways = values.shape
        test = stats.friedmanchisquare(*values.T)
        means = stats.rankdata(-values, axis=1).mean(axis=0)
        wide = stats.studentized_range.ppf(1 - LEVEL, ways, np.inf) / np.sqrt(2)
        critical = float(wide * np.sqrt(ways * (ways + 1) / (6 * blocks)))
        return cls(float(test.statistic), float(test.pvalue), means, critical)


def written(p_value: float) -> str:
    """One digit, or a bound."""
    return "below 0.0001" if p_value < 1e-4 else f"{p_value:.1g}"
