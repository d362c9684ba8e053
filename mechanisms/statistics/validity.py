"""The mechanisms that may release each statistic, by relation, for ε alone or (ε, δ).

This is the single source: queries are checked against it, the catalogue and the documents show it.
For each statistic and relation exactly one mechanism is recommended and is the default.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mechanisms.model.domains import NeighbouringRelation as Relation
from mechanisms.model.errors import UnsupportedQuery

_TABLES = (Relation.ADD_REMOVE, Relation.REPLACE)
_GRAPHS = (Relation.EDGE,)
_PREFIXES = (Relation.PREFIX,)


@dataclass(frozen=True)
class ValidCombination:
    """One combination; ``delta`` is True if it takes (ε, δ) with δ > 0 instead of ε alone."""

    statistic: str
    mechanism: str
    relations: tuple[Relation, ...]
    delta: bool
    recommended: bool = False


VALID: tuple[ValidCombination, ...] = (
    ValidCombination("count", "laplace", _TABLES, delta=False, recommended=True),
    ValidCombination("sum", "laplace", _TABLES, delta=False, recommended=True),
    ValidCombination("mean", "laplace", _TABLES, delta=False, recommended=True),
    ValidCombination("quantile", "exponential", _TABLES, delta=False, recommended=True),
    ValidCombination("quantile", "smooth_sensitivity", _TABLES, delta=True),
    ValidCombination("median", "exponential", _TABLES, delta=False, recommended=True),
    ValidCombination("median", "smooth_sensitivity", _TABLES, delta=True),
    ValidCombination("smallest_sum", "laplace", _PREFIXES, delta=False),
    ValidCombination("smallest_sum", "smooth_sensitivity", _PREFIXES, delta=True, recommended=True),
    ValidCombination("smallest_sum", "largest_local_sensitivities", _PREFIXES, delta=True),
    ValidCombination("edges", "laplace", _GRAPHS, delta=False, recommended=True),
    ValidCombination("edges", "smooth_sensitivity", _GRAPHS, delta=True),
    ValidCombination("edges", "largest_local_sensitivities", _GRAPHS, delta=True),
    ValidCombination("edges", "ladder", _GRAPHS, delta=False),
    ValidCombination("triangles", "laplace", _GRAPHS, delta=False),
    ValidCombination("triangles", "smooth_sensitivity", _GRAPHS, delta=True),
    ValidCombination("triangles", "largest_local_sensitivities", _GRAPHS, delta=True),
    ValidCombination("triangles", "ladder", _GRAPHS, delta=False, recommended=True),
    ValidCombination("two_triangles", "laplace", _GRAPHS, delta=False),
    ValidCombination("two_triangles", "smooth_sensitivity", _GRAPHS, delta=True),
    ValidCombination("two_triangles", "largest_local_sensitivities", _GRAPHS, delta=True),
    ValidCombination("two_triangles", "noisy_local_sensitivity", _GRAPHS, delta=True),
    ValidCombination("two_triangles", "ladder", _GRAPHS, delta=False, recommended=True),
    ValidCombination("stars", "laplace", _GRAPHS, delta=False),
    ValidCombination("stars", "smooth_sensitivity", _GRAPHS, delta=True),
    ValidCombination("stars", "ladder", _GRAPHS, delta=False, recommended=True),
)


@lru_cache(maxsize=1024)
def choose(statistic: str, mechanism: str | None, relation: Relation, delta_atto: int) -> str:
    """The requested mechanism, or the recommended one.

    Raises: UnsupportedQuery for an invalid combination; ``supported`` lists the valid ones.
    """
    fitting = [row for row in VALID if row.statistic == statistic and relation in row.relations]
    if not fitting:
        rows = [row for row in VALID if row.statistic == statistic]
        relations = sorted({relation for row in rows for relation in row.relations})
        raise UnsupportedQuery(
            f"{statistic} is not defined under {relation}", supported={"neighbouring": relations}
        )
    for row in fitting:
        if row.mechanism == mechanism or (mechanism is None and row.recommended):
            break
    else:
        names = [row.mechanism for row in fitting]
        raise UnsupportedQuery(
            f"{mechanism} does not release {statistic}", supported={"mechanism": names}
        )
    if row.delta and not delta_atto:
        pure = [other.mechanism for other in fitting if not other.delta]
        raise UnsupportedQuery(
            f"{row.mechanism} is private with a delta above 0 only",
            supported={"delta": "above 0", "mechanism": pure},
        )
    if delta_atto and not row.delta:
        raise UnsupportedQuery(
            f"{row.mechanism} needs no delta: it would be charged for nothing",
            supported={"delta": "0"},
        )
    return row.mechanism
