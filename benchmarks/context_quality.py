"""Contexts and distances of single targets against those without noise, for ``distances``.

An arm is one way to learn. Contexts are compared by the adjusted F-score with what the same way
would choose without noise, matrices by Pearson's correlation with those of such contexts (targets
of three values or more). A repetition is the mean over all targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.metric_evaluation import (
    SIZE,
    Floats,
    Truth,
    adjusted_f,
    correlation,
    interval,
    verdict,
)
from benchmarks.repeated_learning import Repeated
from benchmarks.simulation import randomness
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import plan
from mechanisms.distances.rules import Contexts
from mechanisms.model.sensitivity import Sensitivity

MEASURES = ("adjusted F", "correlation")
#: Values of one measure of one arm: at each ε one a repetition.
Line = list[Floats]
#: By measure and arm.
Scores = dict[str, dict[str, Line]]
#: Where the baseline's matrices are not expected above the others'.
SMALL = ("dermatology", "soybean")


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


def held(name: str, scores: Scores) -> bool:
    """Print every expectation; False when a sign is flipped beyond its interval."""
    good = [
        verdict(f"{measure} of {arm} rises from the least ε to the largest",
                interval(line[-1] - line[0]), True)
        for measure, lines in scores.items()
        for arm, line in lines.items()
        # Noise on entropies drowns what mean_su looks for, at any of these ε.
        if (measure, arm) != ("adjusted F", "mean_su")
    ]  # fmt: skip
    if name in SMALL and "correlation" in scores:
        lines = scores["correlation"]
        baseline = np.concatenate(lines["baseline mean_su"])
        good += [
            verdict(f"correlation of {arm} less the baseline's",
                    interval(np.concatenate(line) - baseline), False)
            for arm, line in lines.items()
            if not arm.startswith("baseline")
        ]  # fmt: skip
    return all(good)
