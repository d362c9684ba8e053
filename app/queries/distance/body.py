"""The body of ``distance`` queries: distances between the values of categorical attributes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import Field

from accounting.composition import for_group
from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.accuracy import least_loss, only
from app.queries.parts.candidates import Text
from app.queries.parts.conversion import charge_for, mechanism_loss
from app.queries.parts.metric import TARGET, MetricOptions, metric_memory, predicted
from app.queries.parts.query import Price, Query, QueryContext
from app.queries.parts.sentences import listing, version_of
from mechanisms.distances.accuracy import cell_noise_scale
from mechanisms.distances.learn import TargetMetric, learn
from mechanisms.distances.plan import Plan, plan
from mechanisms.model.domains import Dataset
from mechanisms.model.release import Release
from mechanisms.model.work import Work, together, work

#: To write one number of an answer takes as long as this many products. The public work on
#: distances is counted in products.
NUMBER = 256


class Distance(MetricOptions, Query):
    """Learns the distances between the values of one attribute or of every attribute."""

    name: ClassVar[str] = "distance"
    title: ClassVar[str] = "Distances between categorical values"
    description: ClassVar[str] = (
        "How far apart the values of an attribute are, by how differently they go together with "
        "the values of its context: a few attributes that say most about it. Without a target "
        "the distances of all attributes are learned at once, each table of a pair released once."
    )

    targets: ClassVar[tuple[str, ...]] = (TARGET,)
    gaussian: ClassVar[bool] = True

    kind: Literal["distance"]
    target: Text | None = Field(default=None, description="One attribute, or null for all.")
    embedding: bool = Field(
        default=False, description="Also coordinates of the values, at exactly these distances."
    )

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        share, conversion = mechanism_loss(dataset, loss)
        public = self._plan(dataset)
        steps = for_group(public.steps(share), dataset.records_per_person)
        accuracy = predicted(public, share)
        return Price((*steps, *conversion), lambda: accuracy)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        scale, public = only(target, TARGET), self._plan(dataset)
        noise = partial(cell_noise_scale, public)
        return charge_for(dataset, least_loss(noise, scale, public.steps))

    def memory(self, dataset: Dataset) -> int:
        return metric_memory(self._plan(dataset))

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        public = self._plan(dataset)
        shape = [(public.levels[target], public.most_axes(target)) for target in public.targets]
        written = sum(values * (values + axes) for values, axes in shape)
        # Each distance between two values is a sum of one product per axis of their coordinates.
        products = sum(values * values * axes for values, axes in shape)
        units = NUMBER * written + products
        return together(public.work(loss), work("distances", units, len(shape)))

    def lowerable(self) -> tuple[str, ...]:
        return ("attributes",)

    def compute(self, context: QueryContext) -> Release:
        share, _ = mechanism_loss(context.dataset, context.loss)
        learned = learn(context.at(share), self._plan(context.dataset))
        return Release({"distances": {one.attribute.name: self._metric(one) for one in learned}})

    def question(self, dataset: Dataset, version: int) -> str:
        place = version_of(dataset, version)
        if self.target is None:
            of, by = "every attribute", "the other attributes"
            if self.attributes:
                of, by = f"each of {listing(self.attributes)}", "the others of these"
            return f"How far apart are the values of {of} in {place}, judged by {by}?"
        others = [name for name in self.attributes or () if name != self.target]
        by = listing(others) if others else "the other attributes"
        return f"How far apart are the values of {self.target} in {place}, judged by {by}?"

    def _plan(self, dataset: Dataset) -> Plan:
        return plan(dataset, self.options(), self.target, self.attributes)

    def _metric(self, learned: TargetMetric) -> dict[str, Any]:
        metric: dict[str, Any] = {
            "values": list(learned.attribute.levels),
            "matrix": learned.matrix.tolist(),
            "context": [attribute.name for attribute in learned.context],
        }
        if self.embedding:
            metric["embedding"] = learned.points.tolist()
        return metric
