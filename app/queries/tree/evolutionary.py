"""Tree queries by evolutionary search: public proposals of trees, then private selections."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import ldexp
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from accounting.composition import for_group
from accounting.privacy_loss import PrivacyLoss
from app.contract.models import Body
from app.queries.parts.accuracy import CONFIDENCE, SCORE_TARGET, only, significant
from app.queries.parts.candidates import Text
from app.queries.parts.conversion import charge_for, mechanism_loss
from app.queries.parts.cost import memory
from app.queries.parts.query import Price, QueryContext
from app.queries.parts.sentences import version_of
from app.queries.parts.utilities import Weight
from app.queries.tree.common import SelectingQuery
from mechanisms.model.domains import Dataset
from mechanisms.model.release import Release
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Work
from mechanisms.trees.evolutionary import Search, search
from mechanisms.trees.evolutionary.fitness import Fitness
from mechanisms.trees.evolutionary.front import Front
from mechanisms.trees.evolutionary.ranking import Ranking

#: The greatest depth of a tree. A full binary tree of this depth is just within the limit on nodes.
MAX_DEPTH = 11


class Weights(Body):
    """The weights of the true positive and true negative rate in a weighted sum."""

    true_positive_rate: Weight = 1.0
    true_negative_rate: Weight = 1.0


class EvolutionaryTree(SelectingQuery):
    """Selects trees with high true positive and true negative rates for one class."""

    title: ClassVar[str] = "Private evolutionary search"
    description: ClassVar[str] = (
        "Random trees over the public schema, crossed, mutated and pruned; each generation selects "
        "privately by the rates of the positive class against all others."
    )
    source: ClassVar[str] = (
        "Differentially Private Multi-Objective Selection, Algorithm 1 (DP-MOET), with the loss "
        "shared among all selections"
    )
    targets: ClassVar[tuple[str, ...]] = (SCORE_TARGET,)

    algorithm: Literal["evolutionary"]
    positive_class: Text
    objective: Literal["weighted_sum", "pareto", "front"] = Field(
        default="weighted_sum",
        description=(
            "`weighted_sum` of the two rates; `pareto`: few trees are better in both; `front`: the "
            "trees trade one rate for the other in even steps, by counts that one record moves by "
            "one, whatever `sensitivity` is."
        ),
    )
    weights: Weights | None = None
    sensitivity: Literal["local", "global"] = "local"
    population: int = Field(default=100, ge=1, le=10_000)
    generations: int = Field(default=2, ge=0, le=100)
    selected: int = Field(default=20, ge=1, le=1000)
    outputs: int = Field(default=1, ge=1, le=1000)
    initial_depth: int = Field(default=3, ge=0, le=MAX_DEPTH)
    max_depth: int = Field(default=5, ge=0, le=MAX_DEPTH)

    @model_validator(mode="after")
    def _weights_of_a_sum(self) -> Self:
        if self.weights is not None and self.objective != "weighted_sum":
            raise ValueError("weights belong to the objective weighted_sum")
        return self

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        share, conversion = mechanism_loss(dataset, loss)
        plan = self._search(dataset)
        steps = for_group(plan.steps(dataset, share), dataset.records_per_person)
        accuracy = self._accuracy(plan, dataset, share)
        return Price((*steps, *conversion), lambda: accuracy)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        error, plan = only(target, SCORE_TARGET), self._search(dataset)
        loss = self._selector().loss_for(plan.pools[-1], error, plan.draws[-1], CONFIDENCE)
        return charge_for(dataset, plan.whole_for(loss * len(plan.draws)))

    def memory(self, dataset: Dataset) -> int:
        search = self._search(dataset)
        return memory(dataset, cells=sum(search.pools) << (self.max_depth + 1))

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:  # noqa: ARG002 - same at any ε
        return self._search(dataset).work(dataset)

    def lowerable(self) -> tuple[str, ...]:
        return ("population", "generations", "max_depth")

    def compute(self, context: QueryContext) -> Release:
        share, _ = mechanism_loss(context.dataset, context.loss)
        trees = search(context.at(share), self._search(context.dataset))
        return Release({"trees": trees})

    def question(self, dataset: Dataset, version: int) -> str:
        which = "decision tree" if self.outputs == 1 else f"{self.outputs} decision trees"
        verb = "tells" if self.outputs == 1 else "tell"
        return (
            f"Which {which} of depth at most {self.max_depth} best {verb} the value "
            f"{self.positive_class} of {self._class(dataset)} from its other values using "
            f"{self._inputs()} in {version_of(dataset, version)}?"
        )

    def _search(self, dataset: Dataset) -> Search:
        weights = {name: Decimal(repr(one)) for name, one in self.weights or Weights()}
        if self.objective == "front":
            fitness: Ranking = Front()
        else:
            fitness = Fitness(self.objective, weights, Sensitivity(self.sensitivity))
        return Search(
            task=self._task(dataset),
            fitness=fitness,
            selector=self._selector(),
            positive_class=self.positive_class,
            population=self.population,
            generations=self.generations,
            selected=self.selected,
            outputs=self.outputs,
            initial_depth=self.initial_depth,
            max_depth=self.max_depth,
        )

    def _accuracy(self, plan: Search, dataset: Dataset, share: PrivacyLoss) -> dict[str, Any]:
        pool, last = plan.pools[-1], plan.draws[-1]
        final = plan.losses(share)[-1]
        if pool == 1:
            return {"explanation": "There is one tree to select from: proposals decide alone."}
        error = self._selector().accuracy(pool, final, last, CONFIDENCE)
        accuracy: dict[str, Any] = {
            "confidence": CONFIDENCE,
            SCORE_TARGET: significant(error),
            "candidates": pool,
            "explanation": (
                "With this probability every tree of the answer scores at most "
                f"`{SCORE_TARGET}` below the best that was left to select, among the candidates of "
                f"the last selection. {self._unit()} How good the candidates are depends on the "
                "proposals."
            ),
        }
        if self.sensitivity == "global" and isinstance(plan.fitness, Fitness):
            # The quote states the accuracy also in the unit of the objective. A Pareto score counts
            # the trees that dominate a tree, and a weighted sum adds up rates of correct
            # predictions.
            grid, scale = plan.fitness.unit(dataset, pool)
            unit = ldexp(grid.cap, -grid.bits) / scale
            accuracy["objective_below_best"] = significant(error * unit)
        return accuracy

    def _unit(self) -> str:
        """What one unit of score is, in words."""
        if self.objective == "front":
            return (
                "One unit of score is one correctly labelled record of the class that weighs more "
                "in a draw, by its weight and its released size."
            )
        return (
            "One unit of score is one step of the sensitivity: under `global` a fixed amount of "
            "the objective (`objective_below_best`), otherwise one that depends on the records."
        )
