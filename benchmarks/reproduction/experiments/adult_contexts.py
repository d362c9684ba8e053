"""Which attributes stand for ``age`` and ``race`` of adult, and what the distances then say.

The chance of each attribute to be in a private context is exact: k draws of the exponential
mechanism.
"""

from __future__ import annotations

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bench, Setting, rows_of
from benchmarks.distances.metric_evaluation import SIZE, Repeated
from benchmarks.reproduction.experiments.contexts import PAPER, SHARE, Comparison
from benchmarks.reproduction.experiments.influential_nodes import rate
from benchmarks.result import Estimate, Result, Verdict, exact, mean
from benchmarks.selections.inclusion import inclusion
from benchmarks.simulation import randomness
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import plan
from mechanisms.model.sensitivity import Sensitivity

TARGETS = ("age", "race")
EPSILONS = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5]
TIMES = 100


def run(setting: Setting) -> Result:
    result = Result()
    one = Comparison(setting.data, "adult_full")
    truth = one.truth
    names = [a.name for a in truth.public.attributes]
    epsilons = setting.fewer(EPSILONS)
    rules = {
        "DILCA_M": truth.rule(Rule.MEAN_SU),
        "DILCA_RR": truth.rule(Rule.NOT_REDUNDANT),
        "max_relevance without noise": truth.drawn(Context.MAX_RELEVANCE),
        "max_dependency without noise": truth.drawn(Context.MAX_DEPENDENCY),
    }
    rows = [
        [way, *(", ".join(names[x] for x in contexts[names.index(t)]) for t in TARGETS)]
        for way, contexts in rules.items()
    ]
    result.table("contexts without noise", ["way", *TARGETS], rows)
    for target in TARGETS:
        number = names.index(target)
        others = list(truth.public.others(number))
        lines: dict[str, list[Estimate]] = {}
        for arm in ("printed", "exact"):
            scores = one.scores[arm][number]
            chances = np.array([inclusion(scores, rate(e * SHARE, SIZE), SIZE) for e in epsilons])
            shown = np.argsort(-chances[-1])[:4]
            lines |= {
                f"{names[others[i]]}, {arm}": exact([float(c) for c in chances[:, i]])
                for i in shown
            }
        result.plot(f"{target}: in its context, k = {SIZE}", "chance", epsilons, lines,
                    "ε of the target")  # fmt: skip
        likely = np.argsort(-inclusion(one.scores["printed"][number], rate(SHARE, SIZE), SIZE))
        best = {names[others[i]] for i in likely[:SIZE]}
        true = {names[x] for x in rules["max_relevance without noise"][number]}
        result.claim(
            PAPER, f"adult: at ε = 1 the private context of {target} is that without privacy",
            f"most likely {', '.join(sorted(best))}; without noise {', '.join(sorted(true))}",
            Verdict.HOLDS if best == true else Verdict.OTHERWISE,
            "" if best == true else "numbers are cut into five bins of equal width here, by "
            "k-means on the records in the paper, which is not private",
        )  # fmt: skip
    matrix(result, setting, one)
    return result


def matrix(result: Result, setting: Setting, one: Comparison) -> None:
    """Distances between the values of race, without noise and at ε = 1."""
    asked = Options(Context.MAX_RELEVANCE, context_size=SIZE, sensitivity=Sensitivity.GLOBAL)
    truth = one.truth
    (true,) = [m for m in truth.metric(one.true) if m.attribute.name == "race"]
    learner = Repeated(truth, plan(truth.table.dataset, asked, "race"))
    loss = PrivacyLoss.parse("1")
    found = [learner.learn(loss, randomness())[0].matrix for _ in range(setting.times(TIMES))]
    levels = list(true.attribute.levels)
    result.table(
        "distances between values of race: without noise, and private at ε = 1",
        ["pair", "without noise", "private"],
        [
            [f"{levels[i]} and {levels[j]}", (float(true.matrix[i, j]), 0.0),
             mean([each[i, j] for each in found])]
            for i in range(len(levels))
            for j in range(i)
        ],
    )  # fmt: skip


def experiments() -> list[Bench]:
    title = "Contexts of age and race in adult"
    return [Bench("adult_contexts", title, run, 4.0, paper=PAPER, files=rows_of("adult_full"))]
