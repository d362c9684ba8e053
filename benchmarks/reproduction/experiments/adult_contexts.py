"""Which attributes stand for ``age`` and ``race`` of adult, and what the distances then say.

The chance of each attribute to be in a private context is exact: k draws of the exponential
mechanism.
"""

import numpy as np

from benchmarks.bench import Bench, Setting, rows_of
from benchmarks.distances.metric_evaluation import SIZE, correlation
from benchmarks.reproduction.experiments.contexts import EPSILONS, SHARE, Comparison
from benchmarks.reproduction.experiments.distances import judge_near
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import HOLDS, OTHERWISE, Estimate, Result, exact, mean
from benchmarks.selections.inclusion import chances
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.model.sensitivity import Sensitivity

TARGETS = ("age", "race")
TIMES = 100


def run(result: Result, setting: Setting) -> None:
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
            law = np.array([chances(scores, e * SHARE, SIZE) for e in epsilons])
            lines |= {
                f"{names[others[i]]}, {arm}": exact(law[:, i]) for i in np.argsort(-law[-1])[:4]
            }
        result.plot(f"{target}: in its context, k = {SIZE}", "chance", epsilons, lines,
                    "ε of the target")  # fmt: skip
        likely = np.argsort(-chances(one.scores["printed"][number], SHARE, SIZE))
        best = {names[others[i]] for i in likely[:SIZE]}
        true = {names[x] for x in rules["max_relevance without noise"][number]}
        result.claim(
            f"adult: at ε = 1 the private context of {target} is that without privacy",
            f"most likely {', '.join(sorted(best))}; without noise {', '.join(sorted(true))}",
            HOLDS if best == true else OTHERWISE,
            "numbers are cut into five bins of equal width here, by k-means on the records in the "
            "paper, which is not private",
        )
    matrix(result, setting, one)


def matrix(result: Result, setting: Setting, one: Comparison) -> None:
    """Distances between the values of race, without noise and at ε = 1."""
    options = Options(Context.MAX_RELEVANCE, context_size=SIZE, sensitivity=Sensitivity.GLOBAL)
    truth = one.truth
    (true,) = [m for m in truth.metric(one.true) if m.attribute.name == "race"]
    learner = truth.learner(options, "race")
    noisy = [learned.matrix for (learned,) in learner.answers(1.0, setting.times(TIMES))]

    def draw() -> float:
        ((learned,),) = learner.answers(1.0, 1)
        return correlation(learned.matrix, true.matrix)

    judge_near(
        result,
        setting,
        "adult: private distances between values of race at ε = 1 are near those without noise",
        "",
        [correlation(each, true.matrix) for each in noisy],
        draw,
        "rare values have few records",
    )
    levels = list(true.attribute.levels)
    result.table(
        "distances between values of race: without noise, and private at ε = 1",
        ["pair", "without noise", "private"],
        [
            [f"{levels[i]} and {levels[j]}", float(true.matrix[i, j]),
             mean([each[i, j] for each in noisy])]
            for i in range(len(levels))
            for j in range(i)
        ],
    )  # fmt: skip


BENCHES = (
    Bench("adult_contexts", "Contexts of age and race in adult", run, 4.0,
          paper=DISTANCES, files=rows_of("adult_full")),
)  # fmt: skip
