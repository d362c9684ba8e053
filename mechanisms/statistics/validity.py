"""The mechanisms that may release each statistic, by relation, for ε alone or (ε, δ).

Queries are checked against this table, and the catalogue and the documents show it.
For each statistic and relation exactly one mechanism is recommended and is the default.
"""

from dataclasses import dataclass
from functools import lru_cache

from mechanisms.model.domains import NeighbouringRelation as Relation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.statistics.release import MECHANISMS

_TABLES = (Relation.ADD_REMOVE, Relation.REPLACE)
_GRAPHS = (Relation.EDGE,)
_PREFIXES = (Relation.PREFIX,)


@dataclass(frozen=True)
class ValidCombination:
    """One valid combination; ``delta`` is True if it needs a δ above 0 beside ε."""

    statistic: str
    mechanism: str
    relations: tuple[Relation, ...]
    delta: bool
    recommended: bool


#: The mechanisms for statistics that have two bounds on the local sensitivity: by distance, and by
#: level. A level holds all datasets of equal local sensitivity.
_BOUNDED = ("laplace", "smooth_sensitivity", "largest_local_sensitivities")

VALID: tuple[ValidCombination, ...] = tuple(
    ValidCombination(statistic, name, relations, MECHANISMS[name].needs_delta, name == recommended)
    for statistic, relations, recommended, names in (
        ("count", _TABLES, "laplace", ("laplace",)),
        ("sum", _TABLES, "laplace", ("laplace",)),
        ("mean", _TABLES, "laplace", ("laplace",)),
        ("quantile", _TABLES, "exponential", ("exponential", "smooth_sensitivity")),
        ("median", _TABLES, "exponential", ("exponential", "smooth_sensitivity")),
        ("smallest_sum", _PREFIXES, "smooth_sensitivity", _BOUNDED),
        ("edges", _GRAPHS, "laplace", (*_BOUNDED, "ladder")),
        ("triangles", _GRAPHS, "ladder", (*_BOUNDED, "ladder")),
        ("two_triangles", _GRAPHS, "ladder", (*_BOUNDED, "noisy_local_sensitivity", "ladder")),
        ("stars", _GRAPHS, "ladder", ("laplace", "smooth_sensitivity", "ladder")),
    )
    for name in names
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
            f"{row.mechanism} is private with a delta above 0 only: name it inside the query",
            supported={"delta": "above 0", "mechanism": pure},
        )
    if delta_atto and not row.delta:
        raise UnsupportedQuery(
            f"{row.mechanism} needs no delta: it would be charged for nothing",
            supported={"delta": "0"},
        )
    return row.mechanism
