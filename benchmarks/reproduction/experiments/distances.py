"""Contexts and matrices of every way to learn, against the same way without noise.

An arm is one way to learn. Contexts are compared by the adjusted F-score with what the same way
would choose without noise, matrices by Pearson's correlation with those of such contexts (targets
of three values or more). A repetition is the mean over all targets.
"""

from collections.abc import Callable, Sequence

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Setting, for_each, rows_of
from benchmarks.data.tables import read_table
from benchmarks.distances.metric_evaluation import (
    EPSILONS,
    SIZE,
    Floats,
    Repeated,
    Truth,
    adjusted_f,
    correlation,
)
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import Result, mean
from benchmarks.rho import rho_of
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.model.sensitivity import Sensitivity

CONTEXT_TABLES = ("dermatology", "soybean", "cmc", "mushroom", "nltcs", "adult_full")
TIMES = 12
MEASURES = ("adjusted F", "correlation")
#: The values of one measure for one arm (a way to learn distances): at each ε, one per repetition.
Line = list[Floats]
#: For each measure, the values of each arm (a way to learn distances).
Scores = dict[str, dict[str, Line]]


#: The ways to learn distances, by name.
ARMS = {
    **{
        f"baseline {rule}": Options(Context.BASELINE, rule=rule, context_size=SIZE)
        for rule in (Rule.MEAN_SU, Rule.NOT_REDUNDANT)
    },
    "mean_su": Options(Context.MEAN_SU),
    **{
        f"{context} {mode}": Options(context, context_size=SIZE, sensitivity=mode)
        for context in (Context.MAX_RELEVANCE, Context.MAX_DEPENDENCY)
        for mode in (Sensitivity.GLOBAL, Sensitivity.LOCAL)
    },
}
#: The line of a plot for this service, which the paper does not have: a query without options whose
#: account counts in ρ (zero-concentrated differential privacy).
OWN = "this service, in ρ"
OWN_OPTIONS = Options(Context.MAX_RELEVANCE, context_size=SIZE)
#: The way to learn distances whose claims are judged, and the baseline that it is compared with.
OURS, BASE = "max_relevance global", "baseline mean_su"
#: From a correlation of ``NEAR`` on, two distance matrices count as near. A difference of
#: correlations below ``EQUAL`` counts as none.
NEAR, EQUAL = 0.9, 0.05


def loss_of(way: str, epsilon: float) -> PrivacyLoss:
    """The loss at ε: of ``OWN`` the ρ that an account of ε holds, as ``rho_of`` has it."""
    return rho_of(epsilon) if way == OWN else PrivacyLoss.parse(repr(epsilon))


def learners(truth: Truth, options: Options) -> list[Repeated]:
    """One per target; a single one where every target needs the tables of all pairs, which then
    are released once for all of them."""
    if options.rule is Rule.NOT_REDUNDANT:
        return [truth.learner(options)]
    return [truth.learner(options, a.name) for a in truth.public.attributes]


def quality(
    truth: Truth, epsilons: Sequence[float], times: int, arms: Sequence[str] = (*ARMS, OWN)
) -> Scores:
    """Every measure of these arms at ε a target; without a correlation where all targets are
    binary."""
    scores: Scores = {measure: {} for measure in MEASURES}
    place = {a.name: number for number, a in enumerate(truth.public.attributes)}
    for arm in arms:
        options = OWN_OPTIONS if arm == OWN else ARMS[arm]
        true = truth.contexts(options)
        best = {one.attribute.name: one.matrix for one in truth.metric(true)}
        by_target = learners(truth, options)
        for epsilon in epsilons:
            values: list[list[float]] = [[], []]
            loss = loss_of(arm, epsilon)
            for metrics in zip(*(one.answers(loss, times) for one in by_target), strict=True):
                likeness, matches = [], []
                for one in (one for metric in metrics for one in metric):
                    name = one.attribute.name
                    numbers = [place[a.name] for a in one.context]
                    matches.append(adjusted_f(numbers, true[place[name]], len(place) - 1))
                    if len(one.points) > 2:
                        likeness.append(correlation(one.matrix, best[name]))
                values[0].append(float(np.mean(matches)))
                values[1].append(float(np.mean(likeness)) if likeness else np.nan)
            for measure, each in zip(MEASURES, values, strict=True):
                scores[measure].setdefault(arm, []).append(np.array(each))
    return {
        measure: lines
        for measure, lines in scores.items()
        if not any(np.isnan(values).any() for line in lines.values() for values in line)
    }


def run(result: Result, setting: Setting, name: str) -> None:
    truth = Truth(read_table(setting.data, name))
    epsilons = setting.fewer(EPSILONS)
    scores = quality(truth, epsilons, setting.times(TIMES))
    for measure, arms in scores.items():
        lines = {arm: [mean(values) for values in line] for arm, line in arms.items()}
        result.plot(f"{name}, k = 3, h = 0.3", measure, epsilons, lines, "ε a target")
        result.stored[measure] = {arm: [v for v, _ in lines[arm]] for arm in ARMS}
    if "correlation" not in scores:
        return
    correlations = scores["correlation"]

    def draw(way: str, epsilon: float) -> float:
        """The correlation of one more run."""
        return float(quality(truth, [epsilon], 1, (way,))["correlation"][way][0][0])

    judge_near(
        result,
        setting,
        f"{name}: with little ε the private distances are close to those without privacy",
        " at the largest ε, max_relevance",
        correlations[OURS][-1].tolist(),
        lambda: draw(OURS, epsilons[-1]),
        "the table is small beside the noise of its contingency tables",
    )
    gaps = [one - other for one, other in zip(correlations[OURS], correlations[BASE], strict=True)]
    judge_baseline(
        result,
        setting,
        name,
        gaps,
        lambda: float(np.mean([draw(OURS, e) - draw(BASE, e) for e in epsilons])),
    )


def judge_near(
    result: Result,
    setting: Setting,
    says: str,
    seen: str,
    correlations: Sequence[float],
    draw: Callable[[], float],
    why: str,
) -> None:
    """Whether private distances are near the true ones; ``draw`` is one further correlation.

    ``seen`` is put behind the mean correlation.
    """
    bar = NEAR - EQUAL
    setting.compare(
        result,
        says,
        lambda gap, half: f"correlation {gap + bar:.3f} ± {half:.3f}{seen}",
        [value - bar for value in correlations],
        lambda: draw() - bar,
        EQUAL,
        f"they are near from a correlation of {NEAR:g} on; {why}",
    )


def judge_baseline(
    result: Result, setting: Setting, name: str, gaps: Sequence[Floats], draw: Callable[[], float]
) -> None:
    """From how much higher correlations are than those of the baseline, run by run, at each ε.

    ``draw`` is the mean over ε of one more run.
    """
    means = [mean(one) for one in gaps]
    worse, better = (sum(sign * value > half for value, half in means) for sign in (-1, 1))
    setting.compare(
        result,
        f"{name}: choosing a context privately beats the baseline that releases all pairs",
        lambda value, half: (
            f"by {value:+.3f} ± {half:.3f}, mean over ε; clearly better at {better}, clearly worse "
            f"at {worse} of {len(gaps)} ε"
        ),
        np.mean(gaps, axis=0).tolist(),
        draw,
        EQUAL,
        "each way is compared with itself without noise; few attributes make the baseline's "
        "tables cheap",
    )


BENCHES = for_each(
    "distances", "Private distances on {}", run, DISTANCES,
    dict(zip(CONTEXT_TABLES, (55.0, 60.0, 4.0, 25.0, 12.0, 15.0), strict=True)), rows_of,
)  # fmt: skip
