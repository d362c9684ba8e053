"""The form of a clustering, with the metric that it learns."""

from __future__ import annotations

from collections.abc import Iterator

from app.contract.datasets import Facts
from app.queries.clustering.body import TARGET, Clustering
from app.queries.parts.form import FormField, KindForm, inner_fields, parameters


class ClusteringForm(KindForm):
    body = Clustering
    order = 50
    datasets = frozenset({"table"})

    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        del facts, variant
        for field in parameters(self.body):
            if field.name == "distance":
                yield from inner_fields(field, "How the distances are learned")
            else:
                yield field

    def targets(self, variant: str) -> tuple[str, ...]:
        del variant
        return (TARGET,)
