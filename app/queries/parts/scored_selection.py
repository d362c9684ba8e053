"""The body of kinds that select candidates by their scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.accuracy import CONFIDENCE, SCORE_TARGET, significant
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
from mechanisms.selection import SELECTORS, Draws, Selector
from mechanisms.selection.top_k import Plan, draw_steps, plan, select_top


class ScoredSelection(Query):
    """Draws by the scores of candidates, one or several."""

    kind: str
    candidates: CandidateList = Nodes()
    utilities: tuple[Member, ...] = Field(min_length=1, max_length=20)
    objective: ObjectiveName = "single"
    sensitivity: Sensitivity = Sensitivity.SHIFTED
    selector: Literal["permute_and_flip", "exponential"] = "permute_and_flip"

    def count(self) -> int:
        """How many candidates are selected."""
        return 1

    def form(self) -> Draws:
        return "peeled"

    def names_nodes(self) -> bool:
        return isinstance(self.candidates, Nodes)

    def anew(self) -> bool:
        """Whether scores that compare candidates are worked out again before each draw."""
        return False

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        share, conversion = mechanism_loss(dataset, loss)
        public = self._plan(dataset)
        steps = draw_steps(
            self._selector(),
            self._objective(),
            share,
            self.count(),
            self.form(),
            self.anew(),
        )
        accuracy = self._accuracy(public, share)
        return Price((*steps, *conversion), lambda: accuracy)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        if set(target) != {SCORE_TARGET}:
            raise UnsupportedQuery("no such accuracy target", supported={"target": [SCORE_TARGET]})
        count = self._plan(dataset).count
        loss = self._selector().loss_for(count, target[SCORE_TARGET], self.count(), CONFIDENCE)
        return charge_for(dataset, loss)

    def compute(self, context: QueryContext) -> Release:
        dataset = context.dataset
        share, _ = mechanism_loss(dataset, context.loss)
        candidates = self.candidates.over(dataset)
        chosen = select_top(
            context.records,
            dataset,
            candidates,
            self._objective(),
            self.sensitivity,
            self._selector(),
            self.count(),
            self.form(),
            share,
            context.randomness,
            context.executor,
            self.anew(),
        )
        return Release(self.answer([candidates.label(dataset, int(index)) for index in chosen]))

    def question(self, dataset: Dataset, version: int) -> str:
        candidates = self.candidates.phrase(version_of(dataset, version), self.count())
        has = "has" if self.count() == 1 else "have"
        measure = phrase_of(self.objective, self.utilities)
        return f"Which {candidates} {has} the highest {measure}{self.candidates.about(dataset)}?"

    def answer(self, labels: list[int | str]) -> dict[str, Any]:
        """The labels of the selected candidates, as the contract shows them."""
        return {"selected": labels[0]}

    def _objective(self) -> Objective:
        return objective_of(self.objective, self.utilities)

    def _selector(self) -> Selector:
        return SELECTORS[self.selector]

    def _plan(self, dataset: Dataset) -> Plan:
        return plan(
            dataset,
            self.candidates.over(dataset),
            self._objective(),
            self.sensitivity,
            self.count(),
        )

    def _accuracy(self, public: Plan, share: PrivacyLoss) -> dict[str, Any]:
        error = self._selector().accuracy(public.count, share, self.count(), CONFIDENCE)
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
        # Steps of a sum or of a Pareto score are no unit of anything that an analyst has asked for.
        if self.sensitivity is Sensitivity.GLOBAL and self.objective == "single":
            unit = math.ldexp(public.grid.cap, -public.grid.bits)
            accuracy["utility_below_best"] = significant(error * unit)
        return accuracy
