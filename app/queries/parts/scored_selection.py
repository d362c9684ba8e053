"""The base of the query kinds that privately select candidates by their scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, PrivateAttr, model_validator

from accounting.composition import Step, for_group
from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.accuracy import CONFIDENCE, SCORE_TARGET, only, significant
from app.queries.parts.candidates import CandidateList, Nodes
from app.queries.parts.conversion import charge_for, mechanism_loss
from app.queries.parts.cost import RECORD, memory
from app.queries.parts.query import Price, Query, QueryContext
from app.queries.parts.sentences import version_of
from app.queries.parts.stages import Route, Shortlist, Stages, route_of
from app.queries.parts.suppression import numbers
from app.queries.parts.utilities import (
    Member,
    ObjectiveName,
    UtilityTerm,
    objective_of,
    phrase_of,
)
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.number import nearest
from mechanisms.model.release import Release
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.work import Work, times, together
from mechanisms.objectives import Objective
from mechanisms.objectives.pareto import MOST_PASSES, PASSES, Pareto
from mechanisms.objectives.pareto_sensitivity import CACHE_BYTES
from mechanisms.selection import JOINT_SELECTORS, LAPLACE, SELECTORS, SUBSET, Choice
from mechanisms.selection.automatic import (
    Request,
    automatic_clip,
    automatic_sensitivity,
    intervals,
    resolved,
    rule_at,
    selected_instead,
)
from mechanisms.selection.choice import order_preserving
from mechanisms.selection.noisy_vector import NoisyScores
from mechanisms.selection.split import split_starts
from mechanisms.selection.top_k import (
    Plan,
    draw_steps,
    plan,
    select_noisy,
    select_set,
    select_top,
)

#: Requests that were stored before ``auto`` existed were computed with these values. A retry whose
#: field is ``auto`` is compared with such a request as if the field had the value here.
FIRST_DEFAULTS: Mapping[str, str] = {
    "sensitivity": "shifted",
    "selector": "permute_and_flip",
    "draws": "peeled",
}

#: Dampened Pareto scores that are more than ``passes`` (a number in the request) below the best are
#: raised to this distance, because lower ones take longer to compute. From a certain ε on, shown in
#: quotes as ``epsilon_least``, this changes an answer with probability e^−3 at most.
_UNSEEN = 3.0


class Drawing(NamedTuple):
    """The way to draw k candidates; with ``rescore`` they are scored again before each draw."""

    k: int = 1
    draws: Literal["auto", "peeled", "one_shot"] = "auto"
    rescore: bool = False


class _Terms(NamedTuple):
    """The public facts of a selection at one loss; ``first`` is the stage of a shortlist."""

    loss: PrivacyLoss
    choice: Choice
    public: Plan
    first: Shortlist | None = None
    #: The reason for which ``auto`` chose this sensitivity; None if the request names the
    #: sensitivity.
    reason: str | None = None

    @property
    def resolved(self) -> dict[str, str]:
        """The names that ``auto`` stands for, and the reason."""
        named = self.choice.as_dict()
        if self.first is not None:
            named |= self.first.as_dict()
        return named if self.reason is None else {**named, "reason": self.reason}

    @property
    def order_preserving(self) -> bool:
        """Whether the scores of every stage follow the order of the utilities."""
        stages = [(self.choice.sensitivity, self.public.grid)]
        if self.first is not None:
            stages.append((self.first.sensitivity, self.first.plan.grid))
        return all(order_preserving(how, grid) for how, grid in stages)


class ScoredSelection(Query):
    """Selects one or several candidates, likely those with the highest scores."""

    targets: ClassVar[tuple[str, ...]] = (SCORE_TARGET,)

    kind: str
    candidates: CandidateList = Nodes()
    utilities: tuple[Member, ...] = Field(min_length=1, max_length=20)
    objective: ObjectiveName = "single"
    sensitivity: Literal["auto", "global", "local", "flattened", "shifted"] = "auto"
    selector: Literal["auto", "permute_and_flip", "exponential", "subset", "laplace"] = "auto"

    stages: Stages | None = Field(
        default=None,
        description=(
            "Draw a shortlist first, by the scores that find good candidates at a small ε, then "
            "select out of it by scores nearer to the utilities under the rest of ε."
        ),
    )
    passes: int = Field(
        default=PASSES,
        ge=1,
        le=MOST_PASSES,
        description=(
            "For `pareto`: the passes over the candidates. Candidates that score more than this "
            "below the best count almost alike. Each pass takes time."
        ),
    )

    #: True if the account counts in ρ as well as in ε. Then the service may choose other values for
    #: fields whose value is ``auto``, such as another selector.
    _counts_rho: bool = PrivateAttr(default=False)

    @model_validator(mode="after")
    def _stages_fit(self) -> Self:
        if self.stages is None:
            return self
        if self.drawing().rescore:
            raise ValueError("`rescore` does not go with `stages`")
        if self.sensitivity == "shifted":
            raise ValueError("the second of two `stages` is not `shifted`")
        if self.stages.shortlist is None:
            if self.sensitivity != "auto":
                raise ValueError("a named sensitivity takes `stages` with a named shortlist")
        elif self.stages.shortlist < self.drawing().k:
            raise ValueError("the shortlist of `stages` holds at least k candidates")
        return self

    def drawing(self) -> Drawing:
        return Drawing()

    def in_form(self, form: int) -> Self:
        changed: dict[str, Any] = {}
        if form < 3 and self.passes == PASSES:
            # Older stored requests, of form 1 or 2, lack the field ``passes`` and were computed
            # with its greatest value. So a retry with the default is compared with them as if it
            # named that value.
            changed["passes"] = MOST_PASSES
        if form < 2:
            names = FIRST_DEFAULTS.keys() & type(self).model_fields.keys()
            changed |= {n: FIRST_DEFAULTS[n] for n in names if getattr(self, n) == "auto"}
        return self.model_copy(update=changed)

    def in_rho(self) -> Self:
        return self.model_copy().count_rho()

    def count_rho(self) -> Self:
        """Let this query, a copy of its own, take its defaults for a loss in ρ."""
        self._counts_rho = True
        return self

    def names_nodes(self) -> bool:
        return isinstance(self.candidates, Nodes)

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        whole, conversion = mechanism_loss(dataset, loss)
        terms = self._terms(dataset, whole)
        shortlist = () if terms.first is None else terms.first.steps()
        drawn = self._steps(terms.public, terms.choice, terms.loss)
        steps = for_group((*shortlist, *drawn), dataset.records_per_person)
        accuracy = self._accuracy(terms)
        return Price(
            (*steps, *conversion), lambda: accuracy, terms.resolved, terms.order_preserving
        )

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        error, k = only(target, SCORE_TARGET), self.drawing().k
        reached = PrivacyLoss(0)
        for start, below in self._intervals(dataset):
            # In a field with the value ``auto`` the service chooses by ε. It makes the same choices
            # from ``start`` up to the beginning of the next interval of ε, so one prediction serves
            # a whole interval.
            route = self._route(dataset, PrivacyLoss(start))
            choice = self._choice(dataset, route, PrivacyLoss(start))
            if self._clipped(choice) and error >= self.passes:
                raise UnsupportedQuery(
                    "scores further below the best than the passes are clipped",
                    supported={SCORE_TARGET: self.passes},
                )
            needed = _loss_for(choice, self._plan(dataset, route, choice), k, error)
            if route.division is not None:
                needed = route.division.loss_for(needed)
            reached = PrivacyLoss(max(needed.epsilon_nano, start))
            if below is None or reached.epsilon_nano < below:
                break
        return charge_for(dataset, reached)

    def memory(self, dataset: Dataset) -> int:
        members = sum(len(getattr(one, "weighted_sum", (one,))) for one in self.utilities)
        # A Pareto score caches for its next draws how many candidates dominate each one (are better
        # in every utility), so its queries need this memory too.
        cached = 2 * CACHE_BYTES if self.objective == "pareto" else 0
        return memory(dataset, record=RECORD * (1 + members), more=cached)

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        whole, _ = mechanism_loss(dataset, loss)
        terms, candidates = self._terms(dataset, whole), self.candidates.over(dataset)
        objective, choice = self._objective(), terms.choice
        scored = objective.work(dataset, candidates, choice.sensitivity)
        size = n = candidates.count(dataset)
        if terms.first is not None:
            size = terms.first.size
            first = objective.work(dataset, candidates, terms.first.sensitivity)
            scored = together(scored, first, SUBSET.work(n, size))
        again: Work = {}
        if self.drawing().rescore and isinstance(objective, Pareto):
            again = objective.rescoring(dataset, candidates, choice.sensitivity)
        drawn = self._draw_work(size, choice, terms.loss)
        return together(scored, drawn, times(again, self.drawing().k - 1))

    def _draw_work(self, n: int, choice: Choice, loss: PrivacyLoss) -> Work:
        k = self.drawing().k
        if choice.selector == "subset":
            return SUBSET.work(n, k)
        if choice.selector == "laplace":
            return LAPLACE.work(n, loss)
        return SELECTORS[choice.selector].work(n, k, choice.draws)

    def lowerable(self) -> tuple[str, ...]:
        passes = ("passes",) if self.objective == "pareto" else ()
        return ("utilities", *passes, *(("k",) if self.drawing().k > 1 else ()))

    def compute(self, context: QueryContext) -> Release:
        whole, _ = mechanism_loss(context.dataset, context.loss)
        terms = self._terms(context.dataset, whole)
        candidates, listed = self.candidates.over(context.dataset), None
        if terms.first is not None:
            listed = terms.first.draw(context, candidates, self._objective())
        indices, values = self._selected(context.at(terms.loss), terms.choice, terms.public, listed)
        if values and terms.public.grid.bits == 0:
            # Utilities in whole units are numbers of records or edges. The owner may have set a
            # minimum count, below which such numbers are not shown.
            values = {**values, "values": numbers(values["values"], context.dataset)}
        if listed is not None:
            indices = listed[indices]
        labels = [candidates.label(context.dataset, int(index)) for index in indices]
        return Release(
            {
                **self.answer(labels, terms.choice),
                **values,
                "resolved": terms.resolved,
                "order_preserving": terms.order_preserving,
            }
        )

    def question(self, dataset: Dataset, version: int) -> str:
        k, place = self.drawing().k, version_of(dataset, version)
        subject, about = self.candidates.phrase(dataset, place, k)
        measure = phrase_of(self.objective, self.utilities)
        return f"Which {subject} {'has' if k == 1 else 'have'} the highest {measure}{about}?"

    def answer(self, labels: list[int | str], choice: Choice) -> dict[str, Any]:  # noqa: ARG002
        """Returns the JSON answer that holds the labels of the selected candidates."""
        return {"selected": labels[0]}

    def _objective(self) -> Objective:
        return objective_of(self.objective, self.utilities, self.passes)

    def _ranking(self) -> str:
        """The name under which the rule of ``auto`` lists this ranking, such as a utility's."""
        first = self.utilities[0]
        if self.objective == "single" and isinstance(first, UtilityTerm):
            return first.name
        if self.objective == "pareto":
            return "pareto"
        return f"weighted_sum of {self._objective().candidates}"

    def _terms(self, dataset: Dataset, whole: PrivacyLoss) -> _Terms:
        """The public facts of a selection at the loss ``whole``. Raises: UnsupportedQuery."""
        if whole.unpriced:
            choice = self._gaussian()
            return _Terms(whole, choice, self._plan(dataset, Route(), choice))
        route = self._route(dataset, whole)
        share, first = whole, None
        if route.division is not None:
            listing, share = whole.divided(route.division.share)
            first = self._shortlist(dataset, route.division.size, listing)
        choice, reason = self._choice(dataset, route, share), route.reason
        if route.sensitivity is None:
            reason = rule_at(self._ranking(), self.drawing().k, share).reason
        return _Terms(share, choice, self._plan(dataset, route, choice), first, reason)

    def _route(self, dataset: Dataset, whole: PrivacyLoss) -> Route:
        named = None if self.sensitivity == "auto" else Sensitivity(self.sensitivity)
        count = self.candidates.over(dataset).count(dataset)
        return route_of(self.stages, named, self._ranking(), self.drawing().k, whole, count)

    def _shortlist(self, dataset: Dataset, size: int, loss: PrivacyLoss) -> Shortlist:
        how = automatic_sensitivity(self._ranking(), size, loss)
        candidates, objective = self.candidates.over(dataset), self._objective()
        public = plan(dataset, candidates, objective, how, size, "subset")
        return Shortlist(size, loss, how, public)

    def _gaussian(self) -> Choice:
        """The choice for a loss in ρ alone. Raises: UnsupportedQuery for all but a noisy vector."""
        drawing = self.drawing()
        other = self.selector not in ("auto", "laplace") or drawing.draws != "auto"
        if other or drawing.rescore or self.stages is not None:
            raise UnsupportedQuery(
                "rho takes a noisy vector of all scores, which is released at once",
                supported={"selector": "laplace"},
            )
        how = Sensitivity.GLOBAL if self.sensitivity == "auto" else Sensitivity(self.sensitivity)
        return Choice(how, "laplace", gaussian=True)

    def _request(self, sensitivity: Sensitivity | None) -> Request:
        drawing = self.drawing()
        return Request(
            ranking=self._ranking(),
            k=drawing.k,
            sensitivity=sensitivity,
            selector=None if self.selector == "auto" else self.selector,
            draws=None if drawing.draws == "auto" else drawing.draws,
            rescore=drawing.rescore,
            in_rho=self._counts_rho,
        )

    def _intervals(self, dataset: Dataset) -> list[tuple[int, int | None]]:
        """The ranges of ε in each of which ``auto`` makes one choice."""
        if self.sensitivity != "auto" or (self.stages is not None and self.stages.division):
            return [(0, None)]
        ranking, k = self._ranking(), self.drawing().k
        candidates, objective = self.candidates.over(dataset), self._objective()
        how = automatic_sensitivity(ranking, k, PrivacyLoss(0))
        clip = automatic_clip(self._request(None), dataset, candidates, objective, how)
        return intervals(ranking, k, clip, () if self.stages is None else split_starts(ranking, k))

    def _choice(self, dataset: Dataset, route: Route, share: PrivacyLoss) -> Choice:
        candidates, objective = self.candidates.over(dataset), self._objective()
        return resolved(self._request(route.sensitivity), dataset, candidates, objective, share)

    def _plan(self, dataset: Dataset, route: Route, choice: Choice) -> Plan:
        candidates, k = self.candidates.over(dataset), self.drawing().k
        objective = self._objective()
        public = plan(
            dataset, candidates, objective, choice.sensitivity, k, choice.selector, choice.clip
        )
        return public if route.division is None else public.of(route.division.size)

    def _steps(self, public: Plan, choice: Choice, share: PrivacyLoss) -> tuple[Step, ...]:
        k, influence = self.drawing().k, public.influence
        if choice.selector == "subset":
            return SUBSET.steps(share, k, influence)
        if choice.selector == "laplace":
            return LAPLACE.steps(share, influence)
        selector, rescore = SELECTORS[choice.selector], self.drawing().rescore
        return draw_steps(selector, self._objective(), share, k, choice.draws, rescore)

    def _selected(
        self, context: QueryContext, choice: Choice, public: Plan, listed: Integers | None
    ) -> tuple[Integers, dict[str, Any]]:
        """The indices of the selected candidates, and their values where they are released.

        With ``listed``, the indices of a shortlist, they are places in it.
        """
        candidates, objective = self.candidates.over(context.dataset), self._objective()
        k, how = self.drawing().k, choice.sensitivity
        if choice.selector == "subset":
            return select_set(context, candidates, objective, how, k, listed, choice.clip), {}
        if choice.selector == "laplace":
            noisy = select_noisy(context, candidates, objective, how, k, listed)
            error = LAPLACE.error(context.loss, public.influence, CONFIDENCE)
            return noisy.indices, self._values(noisy, public, choice, error)
        indices = select_top(
            context.records,
            context.dataset,
            candidates,
            objective,
            how,
            SELECTORS[choice.selector],
            k,
            choice.draws,
            context.loss,
            context.randomness,
            context.executor,
            self.drawing().rescore,
            listed,
        )
        return indices, {}

    def _values(
        self, noisy: NoisyScores, public: Plan, choice: Choice, error: int
    ) -> dict[str, Any]:
        """Noisy utilities with intervals, where a score is a utility up to a public factor."""
        unit = self._utility_unit(public, choice)
        if unit is None:
            return {}
        # A score is rounded down to a multiple of its grid step, so the true utility may be one
        # step higher. The interval therefore extends one step further up.
        above = error if unit == 1 else error + 1
        values = noisy.values.tolist()
        numbers = {
            "value": [nearest(value * unit) for value in values],
            "low": [nearest((value - error) * unit) for value in values],
            "high": [nearest((value + above) * unit) for value in values],
        }
        return {"values": numbers, "confidence": CONFIDENCE}

    def _utility_unit(self, public: Plan, choice: Choice) -> Fraction | None:
        """The utility in one step of a score, or None where that depends on the records."""
        constant = choice.sensitivity is Sensitivity.GLOBAL or public.grid.horizon == 1
        # Analysts could not interpret the unit of a weighted sum or of a Pareto score, so none is
        # given.
        if not constant or self.objective != "single":
            return None
        return Fraction(public.grid.cap, 1 << (public.grid.bits + public.score_bits))

    def _accuracy(self, terms: _Terms) -> dict[str, Any]:
        share, choice, public, first, _ = terms
        k, influence = self.drawing().k, public.influence
        if choice.selector in JOINT_SELECTORS:
            error = JOINT_SELECTORS[choice.selector].accuracy(share, k, influence, CONFIDENCE)
        else:
            error = SELECTORS[choice.selector].accuracy(
                public.count, share, k, CONFIDENCE, one_way=influence.one_way
            )
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
        if not order_preserving(choice.sensitivity, public.grid):
            accuracy["explanation"] += " " + selected_instead(self._ranking(), choice)
        if first is not None:
            accuracy["shortlist_score_below_best"] = significant(first.score_below_best(CONFIDENCE))
            accuracy["explanation"] += (
                " The best is that of the shortlist, whose candidates score at most "
                "`shortlist_score_below_best` below those that it leaves out, by scores of its own."
            )
            if not order_preserving(first.sensitivity, first.plan.grid):
                listed = selected_instead(self._ranking(), Choice(first.sensitivity, "subset"))
                accuracy["explanation"] += f" Of the shortlist: {listed}"
        unit = self._utility_unit(public, choice)
        if unit is not None:
            accuracy["utility_below_best"] = significant(error * influence.one * float(unit))
            if choice.selector == "laplace":
                width = LAPLACE.error(share, influence, CONFIDENCE) * float(unit)
                accuracy["value_error"] = significant(width)
        return accuracy | self._clip(public.count, error) if self._clipped(choice) else accuracy

    def _clipped(self, choice: Choice) -> bool:
        dampened = choice.sensitivity in (Sensitivity.LOCAL, Sensitivity.FLATTENED)
        return self.objective == "pareto" and dampened

    def _clip(self, count: int, error: float) -> dict[str, Any]:
        """Returns what the clip of dampened Pareto scores at ``passes`` means for the accuracy."""
        k, passes = self.drawing().k, self.passes
        spare = passes - k + 1
        # From this ε on, raising the scores that are more than ``passes`` below the best changes
        # at most one answer in 20.
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


def _loss_for(choice: Choice, public: Plan, k: int, error: float) -> PrivacyLoss:
    """The least loss at which the predicted error of this choice is at most ``error``."""
    influence = public.influence
    if choice.selector in JOINT_SELECTORS:
        return JOINT_SELECTORS[choice.selector].loss_for(error, k, influence, CONFIDENCE)
    selector = SELECTORS[choice.selector]
    return selector.loss_for(public.count, error, k, CONFIDENCE, one_way=influence.one_way)
