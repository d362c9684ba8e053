"""The body of ``statistic`` queries: one private number about a table or a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, ValidationInfo, field_validator, model_validator

from accounting.composition import for_group
from accounting.privacy_loss import PrivacyLoss, parse_units
from app.contract.amounts import Delta
from app.queries.parts.accuracy import CONFIDENCE, only
from app.queries.parts.candidates import Text
from app.queries.parts.conversion import charge_for, mechanism_loss
from app.queries.parts.cost import memory
from app.queries.parts.query import Price, Query, QueryContext
from app.queries.parts.sentences import version_of
from app.queries.parts.suppression import number, suppressed
from app.queries.statistic.sentence import sentence
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.number import nearest
from mechanisms.model.release import Release
from mechanisms.model.work import Work
from mechanisms.statistics import MECHANISMS, STATISTICS, Statistic
from mechanisms.statistics.predicate import condition, condition_bytes
from mechanisms.statistics.quantile import exact_share
from mechanisms.statistics.release import Mechanism
from mechanisms.statistics.release.mechanism import Answer
from mechanisms.statistics.validity import choose

if TYPE_CHECKING:
    StatisticName: TypeAlias = str
    MechanismName: TypeAlias = str
else:
    StatisticName = Literal[tuple(STATISTICS)]
    MechanismName = Literal[tuple(MECHANISMS)]

#: For each statistic, the fields of the request that belong to it. All are required, except
#: ``where``.
FIELDS: dict[str, tuple[str, ...]] = dict.fromkeys(STATISTICS, ()) | {
    "count": ("where",),
    "sum": ("attribute", "where"),
    "mean": ("attribute", "where"),
    "median": ("attribute", "where"),
    "quantile": ("attribute", "quantile", "where"),
    "stars": ("k",),
}
#: All fields that belong to some statistics only. The other statistics refuse them.
OWN = ("attribute", "quantile", "k", "where")
#: Functions that parse a field of the request into the value that the mechanisms need.
READERS: dict[str, Callable[[Any], object]] = {"quantile": exact_share, "where": condition}
#: The sentence in an answer that explains why it has no interval: the scale of its noise depends on
#: the records.
NO_INTERVAL = "The noise depends on the records, so its size is private and there is no interval."
#: Names of the accuracies that a quote may take as a target: the error of the value, or the error
#: of its rank for the exponential mechanism.
ERROR, RANK_ERROR = "error", "rank_error"


class StatisticQuery(Query):
    """Releases one statistic of a dataset."""

    name: ClassVar[str] = "statistic"
    title: ClassVar[str] = "Private statistic"
    description: ClassVar[str] = (
        "One number about a table or a graph. `mechanism` defaults to the recommended one of the "
        "statistic; some take a `delta` above 0, which is charged, and the others take none."
    )

    targets: ClassVar[tuple[str, ...]] = (ERROR, RANK_ERROR)

    kind: Literal["statistic"]
    statistic: StatisticName
    attribute: Text | None = None
    quantile: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="The share of values below it: 0.5 is the median."
    )
    k: Annotated[int, Field(ge=2, le=4)] | None = Field(
        default=None, description="How many edges of one node a star has."
    )
    where: dict[str, Any] | None = Field(
        default=None,
        description=(
            "Only the rows of a table that meet a condition, for every statistic of tables: "
            "{attribute, in: […]}, {attribute, from, to} (from ≤ value < to), {all: […]}, "
            "{any: […]} or {not: …}; at most 8 deep and 1,000 values"
        ),
    )
    mechanism: MechanismName | None = None
    delta: Delta = 0

    @field_validator(*READERS)
    @classmethod
    def _well_formed(cls, value: Any, info: ValidationInfo) -> Any:
        # Faults in these fields are found without a dataset, so they are reported as errors of the
        # request.
        if value is not None:
            READERS[str(info.field_name)](value)
        return value

    @model_validator(mode="after")
    def _fields_of_the_statistic(self) -> StatisticQuery:
        own = FIELDS[self.statistic]
        for field in OWN:
            is_set = getattr(self, field) is not None
            if is_set and field not in own:
                raise ValueError(f"{field} is not a field of {self.statistic}")
            if not is_set and field in own and field != "where":
                raise ValueError(f"{self.statistic} needs {field}")
        return self

    def delta_atto(self) -> int:
        return self.delta

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        mechanism = self._mechanism(dataset)
        share, conversion = mechanism_loss(dataset, loss)
        statistic = self._statistic
        steps = for_group(mechanism.steps(statistic, dataset, share), dataset.records_per_person)
        return Price((*steps, *conversion), lambda: mechanism.accuracy(statistic, dataset, share))

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        mechanism = self._mechanism(dataset)
        error = only(target, RANK_ERROR if mechanism.name == "exponential" else ERROR)
        return charge_for(dataset, mechanism.loss_reaching(self._statistic, dataset, error))

    def compute(self, context: QueryContext) -> Release:
        dataset = context.dataset
        share, _ = mechanism_loss(dataset, context.loss)
        mechanism = self._mechanism(dataset)
        released = mechanism.answer(self._statistic, context.at(share))
        answer: dict[str, Any] = released.number.as_dict()
        if "low" in answer:
            answer["confidence"] = CONFIDENCE
        else:
            answer["explanation"] = NO_INTERVAL
        scale = self._noise_scale(mechanism, dataset, share)
        if scale is not None:
            answer["noise_scale"] = float(scale)
        if released.parts:
            answer["parts"] = _parts(released)
        return Release(self._without_small(answer, dataset))

    def _without_small(self, answer: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
        """Returns the answer without counts below the dataset's minimum.

        A mean and its parts are suppressed together with its count.
        """
        if self._statistic.is_count:
            return number(answer, dataset)
        parts = answer.get("parts", {})
        if "count" not in parts or "suppressed" not in number(parts["count"], dataset):
            return answer
        hidden = {name: suppressed(part) for name, part in parts.items()}
        return {**suppressed(answer), "parts": hidden}

    def memory(self, dataset: Dataset) -> int:
        return memory(dataset, more=condition_bytes(self.where, dataset))

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        share, _ = mechanism_loss(dataset, loss)
        return self._mechanism(dataset).work(self._statistic, dataset, share)

    def lowerable(self) -> tuple[str, ...]:
        return ("mechanism", "where")

    def question(self, dataset: Dataset, version: int) -> str:
        return sentence(self.statistic, self._fields, version_of(dataset, version))

    def _noise_scale(
        self, mechanism: Mechanism, dataset: Dataset, loss: PrivacyLoss
    ) -> Fraction | None:
        """Returns the public noise scale, cached for the last dataset and loss."""
        memory = self.__dict__.get("_scale")
        if memory is None or memory[0] is not dataset or memory[1] != loss:
            scale = mechanism.noise_scale(self._statistic, dataset, loss)
            memory = self.__dict__["_scale"] = dataset, loss, scale
        result: Fraction | None = memory[2]
        return result

    def _mechanism(self, dataset: Dataset) -> Mechanism:
        name = choose(self.statistic, self.mechanism, dataset.neighbouring, self.delta)
        return MECHANISMS[name]

    @cached_property
    def _statistic(self) -> Statistic:
        fields = {
            name: READERS[name](value) if name in READERS else value
            for name, value in self._fields.items()
        }
        statistic: Statistic = STATISTICS[self.statistic](**fields)
        return statistic

    @property
    def _fields(self) -> dict[str, Any]:
        """The fields specific to this statistic that the query sets, by name."""
        values = {field: getattr(self, field) for field in FIELDS[self.statistic]}
        return {field: value for field, value in values.items() if value is not None}


def stored_mechanism(query: Mapping[str, Any], relation: NeighbouringRelation) -> str:
    """Returns the mechanism of a stored query, or the default one if the query names none."""
    delta = parse_units(query["delta"], 18)
    return choose(query["statistic"], query["mechanism"], relation, delta)


def _parts(released: Answer) -> dict[str, dict[str, int | float]]:
    """The released parts of a mean; ``around`` is what the sum subtracts from each number."""
    parts = {name: number.as_dict() for name, number in released.parts.items()}
    for name, origin in released.origins.items():
        parts[name]["around"] = nearest(origin)
    return parts
