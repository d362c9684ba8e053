"""How often a private context is exactly the planted one, on tables after the authors' script.

Eleven binary attributes, of which those of the context follow the same clusters as the target. The
draws of ``max_relevance`` and ``max_dependency`` are those of the exponential mechanism, so their
chances are exact; those of ``mean_su`` and of the service are sampled. ε is that of the context.
The paper's own values are not on record here: only who is above whom is judged.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from benchmarks.bench import Setting, for_each
from benchmarks.data.tables import PLANTED, Table, planted
from benchmarks.distances.metric_evaluation import Floats, Truth, drawing
from benchmarks.reproduction.experiments.clusters import NOISES
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import Difference, Estimate, Result, exact, mean
from mechanisms.distances.options import Context, Options
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.rate import score_bits

EPSILONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5)
RUNS = 100
#: A difference of two shares of runs below this counts as none.
EQUAL = 0.05
#: The claim that the context is found "nearly always" needs at least this share of the runs.
NEARLY = 0.9
DRAWN = (Context.MAX_RELEVANCE, Context.MAX_DEPENDENCY)
#: The line of a plot for this service, which the paper does not have.
OWN = "this service, max_relevance local"
#: Contexts get half of the ε of a query, so a query with 2ε spends ε on its context.
TARGET, HALF = "x0", Fraction(1, 2)


def chance_of_all(weights: Floats, members: Sequence[int]) -> float:
    """The chance that draws without replacement, as many as members, are exactly the members.

    Weights (n,) are those of the first draw. In terms of independent arrivals, all members come
    before the first of the others: inclusion and exclusion over the members that come after it.
    """
    rest = float(np.delete(weights, members).sum())
    if rest == 0:
        return 1.0
    return sum(
        (-1) ** size * rest / (rest + sum(float(weights[i]) for i in late))
        for size in range(len(members) + 1)
        for late in combinations(members, size)
    )


def exact_chances(table: Table, context: Context, epsilons: Sequence[float]) -> list[float]:
    """The chance of the planted context at each ε, by the exponential mechanism."""
    true = planted_context(table)
    options = Options(context, context_size=len(true), sensitivity=Sensitivity.GLOBAL)
    draws = len(true) if context is Context.MAX_RELEVANCE else 1
    sampler, bits = drawing(table, options), score_bits(draws)
    candidates, _ = sampler.candidates(0)
    # The candidates that have to be drawn. They are the planted attributes if a candidate is a
    # single attribute, and the planted set if it is a set.
    members = [i for i, one in enumerate(candidates) if set(one) <= set(true)]
    scores = sampler.scores(0, bits)
    gaps = (scores - scores.max()).astype(float)
    return [
        chance_of_all(np.exp(gaps * epsilon / draws / 2.0 ** (bits + 1)), members)
        for epsilon in epsilons
    ]


def planted_context(table: Table) -> tuple[int, ...]:
    """The numbers of the attributes that follow the clusters as x0 does."""
    _, ones = PLANTED[table.name.split()[1]]
    return tuple(range(1, len(ones)))


def hits(truth: Truth, options: Options, epsilon: float, runs: int) -> list[float]:
    """For each run, 1 if the context is the planted one."""
    true = {f"x{number}" for number in planted_context(truth.table)}
    learner = truth.learner(options, TARGET)
    return [
        float({a.name for a in one.context} == true)
        for (one,) in learner.answers(2 * epsilon, runs)
    ]


def run(result: Result, setting: Setting, name: str) -> None:
    for noise in setting.fewer(NOISES):
        measure(result, setting, planted(name, noise), f"table {name}, noise {noise:g}")


def measure(result: Result, setting: Setting, table: Table, title: str) -> None:
    truth, size = Truth(table), len(planted_context(table))
    epsilons, runs = setting.fewer(EPSILONS), setting.times(RUNS)
    noisy = Options(Context.MEAN_SU, context_share=HALF)
    own = Options(Context.MAX_RELEVANCE, context_size=size, context_share=HALF)
    sampled = {
        way: [hits(truth, options, e, runs) for e in epsilons]
        for way, options in (("mean_su", noisy), (OWN, own))
    }
    lines: dict[str, list[Estimate]] = {
        str(context): exact(exact_chances(table, context, epsilons)) for context in DRAWN
    }
    lines |= {way: [mean(values) for values in line] for way, line in sampled.items()}
    result.plot(title, "share of runs with the planted context", epsilons, lines, "ε of a context")
    by_noise = np.mean(sampled["mean_su"], axis=0)

    def draw() -> float:
        return float(np.mean([hits(truth, noisy, e, 1) for e in epsilons]))

    for context in DRAWN:
        chances = [value for value, _ in lines[str(context)]]
        judge(result, setting, f"{title}: {context}", chances, by_noise.tolist(), draw)


def judge(
    result: Result,
    setting: Setting,
    title: str,
    chances: Sequence[float],
    noisy: Sequence[float],
    draw: Callable[[], float],
) -> None:
    """From the chances of one way at each ε, and the share of hits of ``mean_su`` run by run."""
    last = chances[-1]
    result.compare(
        f"{title} finds the planted context nearly always at the largest ε",
        f"in {last:.3f} of all runs",
        Difference(last - NEARLY + EQUAL, 0.0, EQUAL),
        f"nearly always is a share of {NEARLY:g}; the table or ε is too small",
    )
    expected = float(np.mean(chances))
    setting.compare(
        result,
        f"{title} finds the planted context more often than mean_su",
        lambda value, half: f"by {value:+.3f} ± {half:.3f}, mean over ε",
        [expected - one for one in noisy],
        lambda: expected - draw(),
        EQUAL,
        "noisy entropies of few attributes of few values are accurate enough",
    )


BENCHES = for_each(
    "planted_contexts", "Planted contexts of tables {}", run, DISTANCES,
    dict.fromkeys(PLANTED, 3.0),
)  # fmt: skip
