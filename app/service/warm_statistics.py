"""Every statistic by every mechanism that may release it, once: for ``warm``."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from mechanisms.model.domains import Dataset, NeighbouringRelation, PrefixDomain
from mechanisms.model.executor import Inline
from mechanisms.model.records import PrefixRecords, Records
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.statistics import MECHANISMS, STATISTICS
from mechanisms.statistics.predicate import condition
from mechanisms.statistics.validity import VALID

#: What a statistic is asked about, by its name.
QUESTIONS: dict[str, dict[str, Any]] = {
    "count": {"where": condition({"attribute": "number", "from": 2, "to": 5})},
    "sum": {"attribute": "number"},
    "mean": {"attribute": "number"},
    "median": {"attribute": "number"},
    "quantile": {"attribute": "number", "quantile": Fraction(1, 4)},
    "stars": {"k": 3},
}


def warm_statistics(asked: Mapping[NeighbouringRelation, tuple[Records, Dataset]]) -> None:
    """Release each statistic from the records of its relation, and one more of a public list."""
    values = PrefixDomain((1.0, 2.0, 4.0))
    prefix = Dataset("warm", NeighbouringRelation.PREFIX, values)
    of = {**asked, NeighbouringRelation.PREFIX: (PrefixRecords(2), prefix)}
    for row in VALID:
        statistic = STATISTICS[row.statistic](**QUESTIONS.get(row.statistic, {}))
        loss = PrivacyLoss(NANO, ATTO // 1000 if row.delta else 0)
        for relation in row.relations:
            records, dataset = of[relation]
            MECHANISMS[row.mechanism].release(
                statistic, records, dataset, loss, SystemRandomness(), Inline()
            )
