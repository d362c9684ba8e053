"""``selection``: one candidate, chosen by how high its utility is; ``top_k`` stands on it too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from accounting.privacy_loss import PrivacyLoss
from app.queries.candidates import CandidateList, Nodes
from app.queries.conversion import charge_for, mechanism_loss
from app.queries.query import Price, Query
from app.queries.utilities import Member, ObjectiveName, objective_of
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.model.release import Release
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import Objective
from mechanisms.selection import SELECTORS, Draws, Selector
from mechanisms.selection.top_k import Plan, draw_steps, plan, select_top

#: Quotes say how accurate an answer is with this probability.
CONFIDENCE = 0.95
#: The accuracy that a quote predicts and may be asked to reach: how many steps of the sensitivity
#: the score of a selected candidate falls below the best.
TARGET = "score_below_best"


class Selecting(Query):
    """What selection and top-k have in common: draws by the scores of candidates."""

    kind: Literal["selection", "top_k"]
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
        if set(target) != {TARGET}:
            raise UnsupportedQuery("no such accuracy target", supported={"target": [TARGET]})
        count = self._plan(dataset).count
        loss = self._selector().loss_for(count, target[TARGET], self.count(), CONFIDENCE)
        return charge_for(dataset, loss)

    def compute(
        self,
        records: Records,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> Release:
        share, _ = mechanism_loss(dataset, loss)
        candidates = self.candidates.over(dataset)
        chosen = select_top(
            records,
            dataset,
            candidates,
            self._objective(),
            self.sensitivity,
            self._selector(),
            self.count(),
            self.form(),
            share,
            randomness,
            executor,
            self.anew(),
        )
        return Release(self.answer([candidates.label(dataset, int(index)) for index in chosen]))

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
            TARGET: significant(error),
            "explanation": (
                "With this probability every selected candidate scores at most "
                f"`{TARGET}` below the best that was left to select. One unit of score is one step "
                "of the sensitivity: under `global` a fixed amount of the utility "
                "(`utility_below_best`), otherwise an amount that depends on the records."
            ),
        }
        # Steps of a sum or of a Pareto score are no unit of anything that an analyst has asked for.
        if self.sensitivity is Sensitivity.GLOBAL and self.objective == "single":
            unit = math.ldexp(public.grid.cap, -public.grid.bits)
            accuracy["utility_below_best"] = significant(error * unit)
        return accuracy


class Selection(Selecting):
    """Select one candidate."""

    name: ClassVar[str] = "selection"
    title: ClassVar[str] = "Private selection"
    description: ClassVar[str] = (
        "One candidate out of a public list, likely one whose utility is close to the highest."
    )

    kind: Literal["selection"]


def significant(value: float) -> float:
    """Four significant digits: predictions are bounds, not measurements."""
    return float(f"{value:.4g}")
