"""The form of a metric."""

from __future__ import annotations

from app.queries.distance.body import Distance
from app.queries.parts.form import KindForm
from app.queries.parts.metric import TARGET


class DistanceForm(KindForm):
    body = Distance
    order = 40
    datasets = frozenset({"table"})

    def targets(self, variant: str) -> tuple[str, ...]:
        del variant
        return (TARGET,)
