"""The Pareto score: the number of candidates that are better in every respect, negated."""

from collections.abc import Sequence
from typing import Literal, Self

from mechanisms.kernels.dominance import LARGEST_WORK, dominance_work, reads_of_blocks
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.facts import ObjectiveFacts, SensitivityFacts
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Work, together, work
from mechanisms.objectives.objective import Term, common_candidates, common_relations
from mechanisms.objectives.pareto_sensitivity import CACHE_BYTES, ParetoSensitivity
from mechanisms.utilities.utility import Grid, Measurement, both_ways

#: The default number P of passes over the candidates, and the most that a query may request. Each
#: pass computes the sensitivity function δ at one distance. From distance P on, δ is set to its
#: largest possible value Δ. Every query takes exactly P passes, because the number that would
#: suffice is private.
PASSES, MOST_PASSES = 8, 64


class Pareto:
    """u(r) = −#{r' : every member is strictly larger at r'} ∈ [−(n − 1), 0]; Δ = n − 1.

    δ is ``mechanisms.objectives.pareto_sensitivity``. Equal candidates and ties never dominate.
    Members may be weighted sums. Implements ``Objective``.

    From T = ``passes`` on δ is Δ. So a dampened score deeper than P is clipped: it lies between −P
    and −P − 1, in the order of what was left after P steps. The clip hides differences far below
    the best, which scores 0. Each P gives another shifted score, admissible as well.

    Source: Differentially Private Multi-Objective Selection, Definitions 4.3 and 4.5.
    """

    facts = ObjectiveFacts(
        title="Pareto score",
        description=(
            "Candidates are ranked by how few others are strictly better in every utility. "
            "Members may be weighted sums. Draws of a top_k compare with all candidates that are "
            "left, or with all there are."
        ),
        source=(
            "Differentially Private Multi-Objective Selection, Definitions 4.3 and 4.5 and "
            "Theorem 4.7, with ties counted among what may be lost, which (A1) needs."
        ),
        sensitivity=SensitivityFacts(
            cap="n - 1",
            function="max(A(t - 1) - C(t), A(t) - C(t - 1))",
            horizon=f"the passes of the query, {PASSES} by default",
            terms=(
                "n: candidates; A(t), C(t): how many others may and must dominate when every "
                "utility has moved by its own δ(0) + ... + δ(t); A(-1) = C(-1): how many do"
            ),
        ),
        shift="Always -1: δ is large where many dominate.",
        joint="Every score may move by one unit, in either direction: a spread of 2 min(k, n - k).",
    )

    #: −1 says, for the sensitivity mode ``shifted``, that the sensitivity function δ falls as the
    #: score rises. It is large for a candidate that many others dominate or nearly dominate.
    direction: Literal[1, -1] = -1

    def __init__(
        self, terms: Sequence[Term], passes: int = PASSES, executor: Executor | None = None
    ) -> None:
        if len(terms) < 2 or any(term.weight is not None for term in terms):
            raise UnsupportedQuery(
                "a Pareto score compares two utilities or more, without weights",
                supported={"objective": "pareto", "utilities": 2},
            )
        if not 1 <= passes <= MOST_PASSES:
            raise UnsupportedQuery(
                f"a Pareto score takes between 1 and {MOST_PASSES} passes",
                supported={"passes": MOST_PASSES},
            )
        self._terms, self.passes = tuple(terms), passes
        self._members = [term.member for term in terms]
        if any(isinstance(member, Pareto) for member in self._members):
            raise UnsupportedQuery("a member of a Pareto score is a utility or a weighted sum")
        self._executor = executor or Inline()
        self.candidates = common_candidates(self._members)
        self.relations = common_relations(self._members)

    def on(self, executor: Executor) -> Self:
        """The same objective, measured on this executor."""
        return type(self)(self._terms, self.passes, executor)

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        self._grids(dataset, candidates, sensitivity)
        count = candidates.count(dataset)
        if dominance_work(count, len(self._members)) > LARGEST_WORK:
            raise UnsupportedQuery(
                "too many candidates for a Pareto score of so many utilities: their number "
                "squared, times that of the utilities, is bounded from three utilities on",
                supported={"utilities": 2, "work": LARGEST_WORK},
            )
        return _grid_of(count, self.passes)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        inner = _inner(sensitivity)
        grids = self._grids(dataset, candidates, sensitivity)
        members = [
            member.measure(records, dataset, candidates, inner, own)
            for member, own in zip(self._members, grids, strict=True)
        ]
        delta = ParetoSensitivity.of(members, grids, grid.horizon, self._executor)
        return _measured(delta)

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        # The Pareto score compares candidates by several utilities and never dampens these. So each
        # of them takes the work of the mode ``global``, whatever sensitivity mode the query uses.
        members = [one.work(dataset, candidates, Sensitivity.GLOBAL) for one in self._members]
        count = candidates.count(dataset)
        horizon = self.grid(dataset, candidates, sensitivity).horizon
        passes = 0 if sensitivity is Sensitivity.GLOBAL else horizon
        return together(*members, self._passes(count, 1 + passes, sensitivity))

    def rescoring(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        """The public work of the scores of all candidates without one of them."""
        count = candidates.count(dataset)
        if sensitivity is Sensitivity.GLOBAL:
            return work("pareto again", count)
        horizon = self.grid(dataset, candidates, sensitivity).horizon
        if 8 * count * horizon > CACHE_BYTES:
            return self._passes(count, 1 + horizon, sensitivity)
        return work("pareto again", count * horizon)

    def _passes(self, count: int, passes: int, sensitivity: Sensitivity) -> Work:
        if len(self._members) > 2:
            return work(
                "pareto blocks", passes * reads_of_blocks(count, len(self._members)), passes
            )
        # With two utilities, one sweep over the sorted candidates counts for each candidate how
        # many others dominate it. The sweep takes a logarithmic number of steps per candidate.
        units = passes * count * len(self._members) * count.bit_length()
        return work(f"pareto {sensitivity}", units, passes)

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        return both_ways(dataset, candidates, score_bits)

    def without(self, measured: Measurement, grid: Grid, place: int) -> tuple[Measurement, Grid]:
        """The measurement and public grid of the remaining candidates, without the one at
        ``place``."""
        if not isinstance(measured.delta, ParetoSensitivity):
            raise TypeError("only what a Pareto score has measured can be measured on")
        delta = measured.delta.without(place)
        return _measured(delta), _grid_of(delta.rest.size, grid.horizon)

    def _grids(
        self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity
    ) -> list[Grid]:
        inner = _inner(sensitivity)
        return [member.grid(dataset, candidates, inner) for member in self._members]


def _inner(sensitivity: Sensitivity) -> Sensitivity:
    """The way in which members are measured: δ of the score is smallest if theirs are local."""
    return Sensitivity.GLOBAL if sensitivity is Sensitivity.GLOBAL else Sensitivity.LOCAL


def _grid_of(count: int, horizon: int) -> Grid:
    return Grid(bits=0, cap=max(count - 1, 1), horizon=horizon, largest=count - 1)


def _measured(delta: ParetoSensitivity) -> Measurement:
    return Measurement(-delta.dominators.astype("int64"), delta)
