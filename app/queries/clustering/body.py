"""The body of ``clustering`` queries: cluster centres, with the encoding of their coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from accounting.composition import for_group
from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.accuracy import least_loss, only, significant
from app.queries.parts.candidates import Text
from app.queries.parts.conversion import charge_for, mechanism_loss
from app.queries.parts.cost import memory
from app.queries.parts.metric import (
    MetricOptions,
    Share,
    exact,
    metric_memory,
    noise_words,
    predicted,
)
from app.queries.parts.query import Price, Query, QueryContext
from app.queries.parts.sentences import counted, listing, version_of
from app.queries.parts.suppression import numbers
from mechanisms.clustering.cluster import Clustering as Centres
from mechanisms.clustering.cluster import cluster
from mechanisms.clustering.initial import centre_levels
from mechanisms.clustering.plan import ClusteringPlan, participants
from mechanisms.distances.plan import plan
from mechanisms.model.domains import Dataset
from mechanisms.model.number import CONFIDENCE, whole_numbers
from mechanisms.model.release import Release
from mechanisms.model.work import Work

TARGET = "count_noise_scale"
MAX_CLUSTERS, MAX_ITERATIONS, MAX_STARTS = 1000, 1000, 100

#: One possible record as the request writes it: for every attribute of the clustering, its name and
#: a value.
Possible = dict[Text, Text]


class Clustering(Query):
    """Finds cluster centres of the records by differentially private Lloyd iterations."""

    name: ClassVar[str] = "clustering"
    title: ClassVar[str] = "Private clustering"
    description: ClassVar[str] = (
        "Centres of the records, found by a public number of Lloyd iterations with noise on every "
        "cluster. The centres come with the encoding of all values, so that clients can assign "
        "records of their own; which private record belongs where is never released."
    )

    targets: ClassVar[tuple[str, ...]] = (TARGET,)
    gaussian: ClassVar[bool] = True

    kind: Literal["clustering"]
    clusters: int = Field(ge=1, le=MAX_CLUSTERS)
    encoding: Literal["learned_distance", "one_hot"] = Field(
        default="learned_distance",
        description="Coordinates at the distances of a learned metric, or 0/1 codes.",
    )
    distance: MetricOptions = Field(
        default=MetricOptions(), description="How the metric is learned; see `distance`."
    )
    distance_share: Share = Field(
        default=0.5, description="The part of ε, or of ρ, spent on the metric."
    )
    iterations: int = Field(
        default=5,
        ge=1,
        le=MAX_ITERATIONS,
        description="The iterations of the centres in the answer, those of their trial included.",
    )
    initial_centres: Annotated[tuple[Possible, ...], Field(max_length=MAX_CLUSTERS)] | None = Field(
        default=None,
        description="One possible record per cluster; by default drawn from noisy counts.",
    )

    starts: int | None = Field(
        default=None,
        ge=1,
        le=MAX_STARTS,
        description=(
            "The starts to try, each from centres around the mean of the records; by default as "
            "many as the loss and the bound on rows allow."
        ),
    )

    @model_validator(mode="after")
    def _as_many_centres(self) -> Any:
        if self.initial_centres is not None and self.starts is not None:
            raise ValueError("named initial centres are the only start")
        if self.initial_centres is not None and len(self.initial_centres) != self.clusters:
            raise ValueError("there are as many initial centres as clusters")
        return self

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        share, conversion = mechanism_loss(dataset, loss)
        public = self._plan(dataset)
        steps = for_group(public.steps(share), dataset.records_per_person)
        accuracy: dict[str, Any] = {
            TARGET: significant(public.count_noise_scale(share)),
            "starts": public.trials(public.shares(share)[1]).starts,
            "explanation": (
                f"In every iteration the count of every cluster carries {noise_words(share)} "
                f"`{TARGET}` at most, in records, and so does the sum of every coordinate."
            ),
        }
        if public.metric is not None:
            accuracy["distance"] = predicted(public.metric, public.shares(share)[0])
        return Price((*steps, *conversion), lambda: accuracy)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        scale, public = only(target, TARGET), self._plan(dataset)
        choices = public.choices()
        ends = [public.whole_for(least) for _, least in choices[1:]]
        for (trials, least), end in zip_longest(choices, ends):
            fixed = public if public.initial else replace(public, starts=trials.starts)
            needed = least_loss(fixed.count_noise_scale, scale, fixed.steps)
            reached = max((needed, public.whole_for(least)), key=lambda one: one.epsilon_nano)
            # A larger loss allows more starts (runs of the clustering from new centres). Each
            # number of starts is used from some loss on, up to the loss at which the next number
            # begins. The loss that a number needs to reach the target is the answer only if it is
            # below that end. From the end on, more starts share the loss, so each has more noise.
            if end is None or reached.epsilon_nano < end.epsilon_nano:
                break
        return charge_for(dataset, reached)

    def memory(self, dataset: Dataset) -> int:
        public = self._plan(dataset)
        values = sum(len(attribute.levels) for attribute in public.attributes)
        learning = 0 if public.metric is None else metric_memory(public.metric)
        return memory(dataset, cells=values * (self.clusters + values), more=learning)

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        share, _ = mechanism_loss(dataset, loss)
        return self._plan(dataset).work(share)

    def lowerable(self) -> tuple[str, ...]:
        return ("clusters", "starts", "iterations", "distance.attributes")

    def compute(self, context: QueryContext) -> Release:
        share, _ = mechanism_loss(context.dataset, context.loss)
        result = cluster(context.at(share), self._plan(context.dataset))
        centres = result.centres
        sizes = whole_numbers(centres.sizes.tolist(), centres.error)
        return Release(
            {
                "centres": centres.points.tolist(),
                "sizes": numbers(sizes, context.dataset),
                "confidence": CONFIDENCE,
                "encoding": self._encoding(result),
            }
        )

    def question(self, dataset: Dataset, version: int) -> str:
        clusters, names = counted(self.clusters, "cluster"), self.distance.attributes
        by = f", clustered by {listing(names)}" if names else ""
        distances = "every value, or bin of a number, as a 0/1 code"
        if self.encoding == "learned_distance":
            distances = "learned distances between values"
        return (
            f"Where do the centres of {clusters} of the records of "
            f"{version_of(dataset, version)} lie{by}, with {distances}?"
        )

    def _plan(self, dataset: Dataset) -> ClusteringPlan:
        names = self.distance.attributes
        metric = None
        if self.encoding == "learned_distance":
            metric = plan(dataset, self.distance.options(), None, names)
        attributes = participants(dataset, names)
        initial = None
        if self.initial_centres is not None:
            initial = tuple(centre_levels(attributes, self.initial_centres))
        return ClusteringPlan(
            dataset=dataset,
            attributes=attributes,
            metric=metric,
            distance_share=exact(self.distance_share),
            clusters=self.clusters,
            iterations=self.iterations,
            initial=initial,
            starts=self.starts,
        )

    def _encoding(self, result: Centres) -> dict[str, Any]:
        """Returns all values' vectors. The point of a record joins its vectors in this order."""
        pairs = zip(result.encoding.attributes, result.encoding.points, strict=True)
        return {
            "kind": self.encoding,
            "attributes": [
                {"name": one.name, "values": list(one.levels), "vectors": points.tolist()}
                for one, points in pairs
            ],
        }
