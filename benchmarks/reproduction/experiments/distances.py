"""Contexts and matrices of every way to learn, against the same way without noise.

An arm is one way to learn. Contexts are compared by the adjusted F-score with what the same way
would choose without noise, matrices by Pearson's correlation with those of such contexts (targets
of three values or more). A repetition is the mean over all targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bench, Setting, rows_of
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
from benchmarks.reproduction.experiments.contexts import PAPER
from benchmarks.result import Result, Verdict, mean
from benchmarks.simulation import randomness
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import plan
from mechanisms.distances.rules import Contexts
from mechanisms.model.sensitivity import Sensitivity

CONTEXT_TABLES = ("dermatology", "soybean", "cmc", "mushroom", "nltcs", "adult_full")
TIMES = 12
MEASURES = ("adjusted F", "correlation")
#: Values of one measure of one arm: at each ε one a repetition.
Line = list[Floats]
#: By measure and arm.
Scores = dict[str, dict[str, Line]]


@dataclass(frozen=True)
class Arm:
    """One way to learn, and what it aims at."""

    name: str
    options: Options

    def true(self, truth: Truth) -> Contexts:
        if self.options.context is Context.BASELINE:
            return truth.rule(self.options.rule)
        return truth.drawn(self.options.context)

    def learners(self, truth: Truth) -> list[Repeated]:
        """One a target; a single one where every target needs the tables of all pairs, which
        then are released once for all of them."""
        everyone: Sequence[str | None] = [a.name for a in truth.public.attributes]
        if self.options.rule is Rule.NOT_REDUNDANT:
            everyone = [None]
        return [Repeated(truth, plan(truth.table.dataset, self.options, t)) for t in everyone]


def arms() -> list[Arm]:
    found = [
        Arm(f"baseline {rule}", Options(Context.BASELINE, rule=rule, context_size=SIZE))
        for rule in (Rule.MEAN_SU, Rule.NOT_REDUNDANT)
    ]
    found.append(Arm("mean_su", Options(Context.MEAN_SU)))
    for context in (Context.MAX_RELEVANCE, Context.MAX_DEPENDENCY):
        for mode in (Sensitivity.GLOBAL, Sensitivity.LOCAL):
            options = Options(context, context_size=SIZE, sensitivity=mode)
            found.append(Arm(f"{context} {mode}", options))
    return found


def quality(truth: Truth, epsilons: Sequence[float], times: int) -> Scores:
    """Every measure of every arm at ε a target; without a correlation where all targets are
    binary."""
    scores: Scores = {measure: {} for measure in MEASURES}
    place = {a.name: number for number, a in enumerate(truth.public.attributes)}
    for arm in arms():
        true = arm.true(truth)
        best = {one.attribute.name: one.matrix for one in truth.metric(true)}
        learners = arm.learners(truth)
        for epsilon in epsilons:
            loss = PrivacyLoss.parse(repr(epsilon))
            values: list[list[float]] = [[], []]
            for _ in range(times):
                found, likeness = [], []
                for learner in learners:
                    for one in learner.learn(loss, randomness()):
                        name = one.attribute.name
                        numbers = [place[a.name] for a in one.context]
                        found.append(adjusted_f(numbers, true[place[name]], len(place) - 1))
                        if len(one.points) > 2:
                            likeness.append(correlation(one.matrix, best[name]))
                values[0].append(float(np.mean(found)))
                values[1].append(float(np.mean(likeness)) if likeness else np.nan)
            for measure, each in zip(MEASURES, values, strict=True):
                scores[measure].setdefault(arm.name, []).append(np.array(each))
    return {
        measure: lines
        for measure, lines in scores.items()
        if not any(np.isnan(values).any() for line in lines.values() for values in line)
    }


def run(setting: Setting, table: str) -> Result:
    result = Result()
    truth = Truth(read_table(setting.data, table))
    epsilons = setting.fewer(list(EPSILONS))
    found = quality(truth, epsilons, setting.times(TIMES))
    for measure, arms in found.items():
        lines = {arm: [mean(values) for values in line] for arm, line in arms.items()}
        result.plot(f"{table}, k = 3, h = 0.3", measure, epsilons, lines, "ε a target")
        result.kept[measure] = {arm: [v for v, _ in line] for arm, line in lines.items()}
    if "correlation" in found:
        claims(result, table, found["correlation"])
    result.kept["epsilons"] = epsilons
    return result


def claims(result: Result, table: str, correlation: dict[str, list[np.ndarray]]) -> None:
    ours = correlation["max_relevance global"]
    last = mean(ours[-1])
    high = last[0] >= 0.9
    result.claim(
        PAPER, f"{table}: with little ε the private distances are close to those without privacy",
        f"correlation {last[0]:.3f} ± {last[1]:.3f} at the largest ε, max_relevance",
        Verdict.HOLDS if high else Verdict.OTHERWISE if last[0] >= 0.5 else Verdict.FAILS,
        "" if high else "the table is small beside the noise of its contingency tables",
    )  # fmt: skip
    gaps = [mean(a - b) for a, b in zip(ours, correlation["baseline mean_su"], strict=True)]
    worse, better = (sum(sign * value > half for value, half in gaps) for sign in (-1, 1))
    result.claim(
        PAPER, f"{table}: choosing a context privately beats the baseline that releases all pairs",
        f"clearly better at {better}, clearly worse at {worse} of {len(gaps)} ε",
        Verdict.HOLDS if better and not worse else Verdict.FAILS if worse and not better
        else Verdict.OTHERWISE if better else Verdict.OPEN,
        "" if better and not worse else "each way is compared with itself without noise; few "
        "attributes make the baseline's tables cheap",
    )  # fmt: skip


def experiments() -> list[Bench]:
    return [
        Bench(f"distances.{table}", f"Private distances on {table}", partial(run, table=table),
              seconds, paper=PAPER, files=rows_of(table))
        for table, seconds in zip(CONTEXT_TABLES, (55.0, 60.0, 4.0, 25.0, 12.0, 15.0), strict=True)
    ]  # fmt: skip
