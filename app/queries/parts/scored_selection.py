"""The base of the query kinds that privately select candidates by their scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.accuracy import CONFIDENCE, SCORE_TARGET, only, significant
from app.queries.parts.candidates import CandidateList, Nodes
from app.queries.parts.conversion import charge_for, mechanism_loss
from app.queries.parts.query import Price, Query, QueryContext
from app.queries.parts.sentences import version_of
from app.queries.parts.utilities import Member, ObjectiveName, objective_of, phrase_of
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.release import Release
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import Objective
from mechanisms.objectives.pareto import MOST_PASSES, PASSES
from mechanisms.selection import SELECTORS, Draws, Selector
from mechanisms.selection.top_k import Plan, draw_steps, plan, select_top

#: λ = 3: the clip of scores at the passes changes an answer with probability e^−3 at most.
_UNSEEN = 3.0


class Drawing(NamedTuple):
    """The way to draw k candidates; with ``rescore`` they are scored again before each draw."""

    k: int = 1
    draws: Draws = "peeled"
    rescore: bool = False


class ScoredSelection(Query):
    """Selects one or several candidates, likely those with the highest scores."""

    targets: ClassVar[tuple[str, ...]] = (SCORE_TARGET,)

    kind: str
    candidates: CandidateList = Nodes()
    utilities: tuple[Member, ...] = Field(min_length=1, max_length=20)
    objective: ObjectiveName = "single"
    sensitivity: Sensitivity = Sensitivity.SHIFTED
    selector: Literal["permute_and_flip", "exponential"] = "permute_and_flip"

    passes: int = Field(
        default=PASSES,
        ge=1,
        le=MOST_PASSES,
        description=(
            "For `pareto`: the passes over the candidates. Candidates that score more than this "
            "below the best count almost alike. Each pass takes time."
        ),
    )

    def drawing(self) -> Drawing:
        return Drawing()

    def names_nodes(self) -> bool:
        return isinstance(self.candidates, Nodes)

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        share, conversion = mechanism_loss(dataset, loss)
        public = self._plan(dataset)
        steps = draw_steps(self._selector(), self._objective(), share, *self.drawing())
        accuracy = self._accuracy(public, share)
        return Price((*steps, *conversion), lambda: accuracy)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        error, count = only(target, SCORE_TARGET), self._plan(dataset).count
        if self._clipped() and error >= self.passes:
            raise UnsupportedQuery(
                "scores further below the best than the passes are clipped",
                supported={SCORE_TARGET: self.passes},
            )
        loss = self._selector().loss_for(count, error, self.drawing().k, CONFIDENCE)
        return charge_for(dataset, loss)

    def compute(self, context: QueryContext) -> Release:
        dataset = context.dataset
        share, _ = mechanism_loss(dataset, context.loss)
        candidates, drawing = self.candidates.over(dataset), self.drawing()
        chosen = select_top(
            context.records,
            dataset,
            candidates,
            self._objective(),
            self.sensitivity,
            self._selector(),
            drawing.k,
            drawing.draws,
            share,
            context.randomness,
            context.executor,
            drawing.rescore,
        )
        return Release(self.answer([candidates.label(dataset, int(index)) for index in chosen]))

    def question(self, dataset: Dataset, version: int) -> str:
        k, place = self.drawing().k, version_of(dataset, version)
        subject, about = self.candidates.phrase(dataset, place, k)
        measure = phrase_of(self.objective, self.utilities)
        return f"Which {subject} {'has' if k == 1 else 'have'} the highest {measure}{about}?"

    def answer(self, labels: list[int | str]) -> dict[str, Any]:
        """Returns the JSON answer that holds the labels of the selected candidates."""
        return {"selected": labels[0]}

    def _objective(self) -> Objective:
        return objective_of(self.objective, self.utilities, self.passes)

    def _selector(self) -> Selector:
        return SELECTORS[self.selector]

    def _plan(self, dataset: Dataset) -> Plan:
        candidates, count = self.candidates.over(dataset), self.drawing().k
        return plan(dataset, candidates, self._objective(), self.sensitivity, count)

    def _accuracy(self, public: Plan, share: PrivacyLoss) -> dict[str, Any]:
        count = self.drawing().k
        error = self._selector().accuracy(public.count, share, count, CONFIDENCE)
        accuracy: dict[str, Any] = {
            "confidence": CONFIDENCE,
            SCORE_TARGET: significant(error),
            "explanation": (
                "With this probability every selected candidate scores at most "
                f"`{SCORE_TARGET}` below the best that was left to select. One unit of score is "
                "one step of the sensitivity: under `global` a fixed amount of the utility "
                "(`utility_below_best`), otherwise an amount that depends on the records."
            ),
        }
        # One step of a sum or of a Pareto score has no unit that an analyst could interpret.
        if self.sensitivity is Sensitivity.GLOBAL and self.objective == "single":
            unit = math.ldexp(public.grid.cap, -public.grid.bits)
            accuracy["utility_below_best"] = significant(error * unit)
        return accuracy | self._clip(public.count, error) if self._clipped() else accuracy

    def _clipped(self) -> bool:
        dampened = self.sensitivity in (Sensitivity.LOCAL, Sensitivity.FLATTENED)
        return self.objective == "pareto" and dampened

    def _clip(self, count: int, error: float) -> dict[str, Any]:
        """Returns what the clip of dampened Pareto scores at ``passes`` means for the accuracy."""
        k, passes = self.drawing().k, self.passes
        spare = passes - k + 1
        # At this ε, at most one answer in 20 is another than without the clip.
        least = 2 * k * (math.log(count * k) + _UNSEEN) / spare if spare > 0 else None
        clip: dict[str, Any] = {
            "passes": passes,
            "epsilon_least": None if least is None else significant(least),
        }
        if error >= passes:
            clip[SCORE_TARGET] = None
            clip["explanation"] = (
                f"Candidates that score more than {passes} below the best count alike (`passes`), "
                "and this loss does not keep the selected ones above that. From `epsilon_least` on "
                "this changes at most one answer in 20; more passes lower it and take longer."
            )
        return clip
