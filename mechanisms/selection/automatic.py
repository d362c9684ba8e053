"""The choice that ``auto`` stands for: a public rule, resolved before a query is priced.

The rule reads the utility or objective, the relation, k, ε, and the public description of the
dataset: never a record, and never the number of rows that are stored. It has two parts. A table
names the sensitivity from some ε on. The selector follows from the joint influence of the scores:
a noisy vector where one change moves one or two of them, a set where k of them move together by
less than k draws would pay, else one draw after another. In accounts that count in ρ as well, one
candidate is drawn by the exponential mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.subset import most_rounds
from mechanisms.objectives import Objective
from mechanisms.selection import JOINT_SELECTORS, Choice, Draws, SelectorName
from mechanisms.selection.clipping import Clip, clip_for
from mechanisms.selection.subset import MOST_TOSSES
from mechanisms.selection.top_k import plan
from mechanisms.utilities.utility import ClippedObjective


@dataclass(frozen=True)
class Rule:
    """From this ε on, a ranking uses this sensitivity; later rules of a ranking replace earlier."""

    #: What the candidates are ranked by: the name of a utility, ``pareto``, or ``weighted_sum of``
    #: followed by the kind of candidates, such as nodes.
    ranking: str
    #: The number of candidates to select for which this rule for the choice of a sensitivity holds:
    #: one ("1"), several ("2+") or both ("any").
    k: str
    #: The least ε at which this rule for the choice of a sensitivity applies. It counts per
    #: selected candidate, in units of 10⁻⁹.
    from_nano_each: int
    sensitivity: Sensitivity
    reason: str

    def fits(self, ranking: str, k: int) -> bool:
        return ranking == self.ranking and self.k in ("any", "1" if k == 1 else "2+")

    def from_nano(self, k: int) -> int:
        return self.from_nano_each * k


_ONE_SCORE = "One change moves a utility by the same amount everywhere, so all ways agree."
_CRITERION = (
    "The order of the utilities is kept, and under add_remove all scores move one way, which "
    "halves the noise."
)
_RATE = "The order of the rates is kept, by a step that is smaller the more records there are."
_EXACT = "This ε resolves the order of the utilities themselves."
_BY_DEGREE = "At a small ε, ranking by degree finds the nodes of high betweenness best."
_OWN_STEPS = "Nodes of high degree move by less, and few other nodes reach their scores."
_DOMINATED = "δ is large where many dominate, which tells candidates apart at a small ε."
_UNDOMINATED = "Dampened scores put every undominated candidate first; this ε suffices for them."

RULES: tuple[Rule, ...] = (
    Rule("degree", "any", 0, Sensitivity.GLOBAL, _ONE_SCORE),
    Rule("core_number", "any", 0, Sensitivity.GLOBAL, _ONE_SCORE),
    Rule("h_index", "any", 0, Sensitivity.GLOBAL, _ONE_SCORE),
    Rule("count", "any", 0, Sensitivity.GLOBAL, _ONE_SCORE),
    Rule("max", "any", 0, Sensitivity.GLOBAL, _ONE_SCORE),
    Rule("information_gain", "any", 0, Sensitivity.GLOBAL, _CRITERION),
    Rule("mutual_information", "any", 0, Sensitivity.GLOBAL, _CRITERION),
    Rule("gini", "any", 0, Sensitivity.GLOBAL, _CRITERION),
    Rule("true_positive_rate", "any", 0, Sensitivity.FLATTENED, _RATE),
    Rule("true_negative_rate", "any", 0, Sensitivity.FLATTENED, _RATE),
    Rule("true_positives", "any", 0, Sensitivity.GLOBAL, _ONE_SCORE),
    Rule("true_negatives", "any", 0, Sensitivity.GLOBAL, _ONE_SCORE),
    Rule("egocentric_betweenness", "any", 0, Sensitivity.SHIFTED, _BY_DEGREE),
    Rule(
        "egocentric_betweenness",
        "1",
        NANO,
        Sensitivity.LOCAL,
        "For one node, dampened scores resolve the best from here on.",
    ),
    Rule("egocentric_betweenness", "1", 100 * NANO, Sensitivity.FLATTENED, _EXACT),
    Rule("egocentric_betweenness", "2+", 20 * NANO, Sensitivity.FLATTENED, _EXACT),
    Rule(
        "egocentric_density",
        "any",
        0,
        Sensitivity.SHIFTED,
        "It tells dense nodes of few neighbours apart from others at a smaller ε.",
    ),
    Rule("egocentric_density", "any", 50 * NANO, Sensitivity.GLOBAL, _EXACT),
    Rule("weighted_sum of nodes", "any", 0, Sensitivity.LOCAL, _OWN_STEPS),
    Rule("weighted_sum of nodes", "any", 50 * NANO, Sensitivity.FLATTENED, _EXACT),
    Rule("weighted_sum of attributes", "any", 0, Sensitivity.GLOBAL, _CRITERION),
    Rule("weighted_sum of values", "any", 0, Sensitivity.GLOBAL, _ONE_SCORE),
    Rule("weighted_sum of trees", "any", 0, Sensitivity.FLATTENED, _RATE),
    Rule("pareto", "any", 0, Sensitivity.SHIFTED, _DOMINATED),
    Rule("pareto", "any", 10 * NANO, Sensitivity.LOCAL, _UNDOMINATED),
)


@dataclass(frozen=True)
class Request:
    """The public part of a request that the rule reads; None stands for ``auto``."""

    #: What the candidates are ranked by: the name of a utility, ``pareto``, or ``weighted_sum of``
    #: followed by the kind of candidates, such as nodes.
    ranking: str
    k: int
    sensitivity: Sensitivity | None
    selector: SelectorName | None
    draws: Draws | None
    rescore: bool = False
    #: True if the accounts limit the charge in ρ as well as in ε. Then ``auto`` draws a single
    #: candidate by the exponential mechanism, which costs a quarter of the ρ of permute-and-flip at
    #: the same ε.
    in_rho: bool = False


def resolved(
    request: Request,
    dataset: Dataset,
    candidates: Candidates,
    objective: Objective,
    loss: PrivacyLoss,
) -> Choice:
    """The choice for a mechanism that runs at ``loss``, from public facts alone.

    Raises: UnsupportedQuery when the objective does not fit the dataset, or when ``draws`` is named
        for a selector that does not draw one candidate after another.
    """
    sensitivity = request.sensitivity or automatic_sensitivity(request.ranking, request.k, loss)
    clip = automatic_clip(request, dataset, candidates, objective, sensitivity)
    if clip is not None and loss.epsilon_nano < clip.below_nano:
        return Choice(sensitivity, "subset", clip=clip.units)
    selector = request.selector
    if selector is None:
        public = plan(dataset, candidates, objective, sensitivity, request.k)
        one_by_one = request.rescore or request.draws is not None
        if request.in_rho and request.k == 1:
            selector = "exponential"
        else:
            selector = "permute_and_flip" if one_by_one else cheapest(public.influence, request.k)
    if selector in JOINT_SELECTORS and (request.draws is not None or request.rescore):
        raise UnsupportedQuery(
            f"`{selector}` answers with all candidates at once, scored once",
            supported={"draws": "auto", "rescore": False},
        )
    return Choice(sensitivity, selector, request.draws or "peeled")


def automatic_clip(
    request: Request,
    dataset: Dataset,
    candidates: Candidates,
    objective: Objective,
    sensitivity: Sensitivity,
) -> Clip | None:
    """The clip of a request that names nothing, where dampened scores are drawn as one set."""
    named = (request.sensitivity, request.selector, request.draws)
    if any(part is not None for part in named) or request.rescore:
        return None
    if sensitivity is not Sensitivity.LOCAL or not isinstance(objective, ClippedObjective):
        return None
    public = plan(dataset, candidates, objective, sensitivity, request.k)
    if not few_tosses(public.count, request.k):
        return None
    return clip_for(dataset, candidates, objective, request.k, public)


def automatic_sensitivity(ranking: str, k: int, loss: PrivacyLoss) -> Sensitivity:
    """The sensitivity that the table names for this ε."""
    return rule_at(ranking, k, loss).sensitivity


def rule_at(ranking: str, k: int, loss: PrivacyLoss) -> Rule:
    """The rule of the table for this ε."""
    fitting = [rule for rule in RULES if rule.fits(ranking, k)]
    return max(
        (rule for rule in fitting if rule.from_nano(k) <= loss.epsilon_nano),
        key=lambda rule: rule.from_nano_each,
    )


def second_sensitivity(ranking: str) -> Sensitivity:
    """The sensitivity for the best of a shortlist, whose scores keep the order of the utilities.

    A ranking whose table begins with ``global`` keeps it, and others take ``flattened``.
    """
    first = automatic_sensitivity(ranking, 1, PrivacyLoss(0))
    return first if first is Sensitivity.GLOBAL else Sensitivity.FLATTENED


def cheapest(influence: JointInfluence, k: int) -> SelectorName:
    """The selector of k candidates that asks the least loss for scores of this influence."""
    if k == 1:
        return "permute_and_flip"
    if influence.total <= 2 * influence.one:
        return "laplace"
    apart = (1 if influence.one_way else 2) * k * influence.one
    pays = influence.spread_of(k) < apart and few_tosses(influence.count, k)
    return "subset" if pays else "permute_and_flip"


def few_tosses(count: int, k: int) -> bool:
    """Whether a set of k out of ``count`` is drawn in an acceptable number of tosses."""
    return count * most_rounds(count, k) <= MOST_TOSSES


def intervals(
    ranking: str, k: int, clip: Clip | None = None, splits: Iterable[int] = ()
) -> list[tuple[int, int | None]]:
    """The ranges of ε in nano, (from, below), in each of which the choice is the same.

    ``splits``: where the stages of a selection change.
    """
    changes = {rule.from_nano(k) for rule in RULES if rule.fits(ranking, k)}
    starts = sorted(changes | ({clip.below_nano} if clip else set()) | set(splits))
    return [*pairwise(starts), (starts[-1], None)]


def selected_instead(ranking: str, choice: Choice) -> str:
    """What may be selected where scores do not follow the order of the utilities, in words."""
    if choice.clip:
        return (
            f"Scores below {choice.clip} count as {choice.clip}, in units of score: where fewer "
            "than k candidates score more, the others are selected at random among all the rest."
        )
    if choice.sensitivity is Sensitivity.SHIFTED and ranking == "egocentric_betweenness":
        return (
            "The scores do not follow the order of the utilities: below 0.577 times max_degree "
            "nodes rank by their degree, whatever their betweenness."
        )
    if choice.sensitivity is Sensitivity.SHIFTED:
        return (
            "The scores do not follow the order of the utilities: a candidate that one change "
            "moves more (or less, as the public direction says) may be selected instead."
        )
    return (
        "The scores do not follow the order of the utilities: a candidate of lower utility that "
        "one change hardly moves may be selected instead of one of higher utility."
    )
