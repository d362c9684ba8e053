"""``distance``: how far apart the values of categorical attributes are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from accounting.privacy_loss import PrivacyLoss
from app.queries.candidates import Text
from app.queries.conversion import charge_for, mechanism_loss
from app.queries.metric import TARGET, MetricOptions, predicted
from app.queries.query import Price, Query
from app.queries.reaching import least_loss
from mechanisms.distances.accuracy import cell_noise_scale
from mechanisms.distances.learn import TargetMetric, learn
from mechanisms.distances.plan import Plan, plan
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.model.release import Release


class Distance(MetricOptions, Query):
    """Learn the distances between the values of one attribute or of all."""

    name: ClassVar[str] = "distance"
    title: ClassVar[str] = "Distances between categorical values"
    description: ClassVar[str] = (
        "How far apart the values of an attribute are, by how differently they go together with "
        "the values of its context: a few attributes that say most about it. Without a target "
        "the distances of all attributes are learned at once, each table of a pair released once."
    )

    kind: Literal["distance"]
    target: Text | None = Field(default=None, description="One attribute, or null for all.")
    embedding: bool = Field(
        default=False, description="Also coordinates of the values, at exactly these distances."
    )

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        share, conversion = mechanism_loss(dataset, loss)
        public = self._plan(dataset)
        steps, accuracy = public.steps(share), predicted(public, share)
        return Price((*steps, *conversion), lambda: accuracy)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        if set(target) != {TARGET}:
            raise UnsupportedQuery("no such accuracy target", supported={"target": [TARGET]})
        public = self._plan(dataset)

        def noise(loss: PrivacyLoss) -> float:
            public.steps(loss)
            return cell_noise_scale(public, loss)

        return charge_for(dataset, least_loss(noise, target[TARGET]))

    def compute(
        self,
        records: Records,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> Release:
        share, _ = mechanism_loss(dataset, loss)
        learned = learn(records, self._plan(dataset), share, randomness, executor)
        return Release({"distances": {one.attribute.name: self._shown(one) for one in learned}})

    def _plan(self, dataset: Dataset) -> Plan:
        return plan(dataset, self.options(), self.target, self.attributes)

    def _shown(self, learned: TargetMetric) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "values": list(learned.attribute.levels),
            "matrix": learned.matrix.tolist(),
            "context": [attribute.name for attribute in learned.context],
        }
        if self.embedding:
            shown["embedding"] = learned.points.tolist()
        return shown
