"""The order of the mechanisms that follow the records: by error, by time, and how both grow.

Two-triangles of subgraphs of Gowalla at ε = 1, each induced by the nodes of largest degree. What
the paper's two tables of orders print is not on record here. So only who comes before whom is
judged, and the sentence of the abstract that both are about. The mechanism that this service takes
where a query names none is one of those in order, so the tables mark it. An account in ρ gets no
other noise of this statistic.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import log, log10

import numpy as np

from app.service.warm import warm
from benchmarks.bench import Bench, Setting, edges_of
from benchmarks.data.graphs import read_edge_list
from benchmarks.distances.metric_evaluation import Floats
from benchmarks.reproduction.experiments.gowalla_counts import LEVELS, named, prepared
from benchmarks.reproduction.papers import NOISE
from benchmarks.result import OPEN, Cell, Difference, Estimate, Result, Value, mean, timed
from benchmarks.rounds import processor
from benchmarks.statistics.errors import EPSILONS, errors, releases
from mechanisms.statistics.triangles import TwoTriangles

SIZES = (100, 300, 1000, 3000, 10_000)
RIVALS = ("smooth_sensitivity", "noisy_local_sensitivity", "ladder")
WAYS = (LEVELS, *RIVALS)
TIMES, ROUNDS = 60, 5
#: So many answers are timed together, because a single one takes only a tenth of a millisecond.
ANSWERS = 20
EPSILON = 1.0
#: A ratio of errors or of times below this counts as equal. Differences are of decimal logarithms.
EQUAL = 1.25
WHY = {
    "accurate": "with the right bound LLS is never less noisy than smooth sensitivity, and the "
    "ladder spends no δ",
    "quick": "every mechanism reads a bound of its own, which takes no time to speak of",
}


def run(result: Result, setting: Setting) -> None:
    warm()
    edges, sizes = read_edge_list(setting.data, "gowalla"), setting.fewer(SIZES)
    order = np.argsort(-np.bincount(np.concatenate(edges[:2])), kind="stable")
    graphs = [prepared(edges, order[:size]) for size in sizes]

    def errors_by_way(times: int) -> list[dict[str, Estimate]]:
        at = EPSILONS.index(EPSILON)
        lines = [errors(TwoTriangles(), *graph, times) for graph in graphs]
        return [{way: line[way][at] for way in WAYS} for line in lines]

    def seconds_by_way() -> Floats:
        """Seconds of a processor of one answer, (ways, sizes)."""
        seconds = [
            [processor(partial(releases, TwoTriangles(), way, *graph, EPSILON, ANSWERS))()
             for graph in graphs]
            for way in WAYS
        ]  # fmt: skip
        return np.array(seconds) / ANSWERS

    times = setting.times(TIMES)
    measured = errors_by_way(times)
    seconds_by_way()
    rounds = [seconds_by_way() for _ in range(setting.times(ROUNDS))]
    middle = np.median(rounds, axis=0)
    order_table(
        result, "median relative error", sizes, [[one[way] for one in measured] for way in WAYS]
    )
    seconds = [[timed(value) for value in row] for row in middle.tolist()]
    order_table(result, "seconds of an answer after preparation", sizes, seconds)
    for number, rival in enumerate(RIVALS, 1):
        by_error = more_accurate(measured, rival)
        while setting.full and by_error.verdict is OPEN:
            times *= 2
            by_error = more_accurate(errors_by_way(times), rival)

        def draw(number: int = number) -> float:
            return quicker(seconds_by_way(), number)

        gaps = setting.narrowed([quicker(one, number) for one in rounds], draw, log10(EQUAL))
        judge(result, rival, by_error, Difference(*mean(gaps), log10(EQUAL)))


def order_table(
    result: Result, title: str, sizes: Sequence[int], rows: Sequence[Sequence[Value]]
) -> None:
    """What each of ``WAYS`` has at each size, how it grows, and its place at the largest size."""
    powers = [growth(sizes, [value for value, _ in row]) for row in rows]
    places = np.argsort(np.argsort([row[-1][0] for row in rows])) + 1
    cells: list[list[Cell]] = [
        [named(TwoTriangles.name, way), *row, power, int(place)]
        for way, row, power, place in zip(WAYS, rows, powers, places, strict=True)
    ]
    result.table(
        f"order by {title} of two-triangles at ε = {EPSILON:g}",
        ["mechanism", *(f"{size:,} nodes" for size in sizes), "grows as nodes to the", "order"],
        cells,
    )


def growth(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The power of the size with which values grow, by least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def more_accurate(measured: Sequence[Mapping[str, Estimate]], rival: str) -> Difference:
    """The decimal logarithm of the rival's error over that of LLS, mean over the sizes."""
    pairs = [(one[rival], one[LEVELS]) for one in measured]
    values = [log10(theirs[0] / ours[0]) for theirs, ours in pairs]
    halves = [one[1] / one[0] / log(10) for pair in pairs for one in pair]
    half = float(np.hypot.reduce(halves)) / len(measured)
    return Difference(float(np.mean(values)), half, log10(EQUAL))


def quicker(seconds: Floats, rival: int) -> float:
    """The decimal logarithm of a rival's seconds over those of LLS, mean over the sizes."""
    return float(np.log10(seconds[rival] / seconds[0]).mean())


def judge(result: Result, rival: str, by_error: Difference, by_time: Difference) -> None:
    """Whether LLS comes before a rival by error, by time, and by either of them."""
    seen = {"accurate": by_error, "quick": by_time}
    for word, difference in seen.items():
        result.compare(
            f"LLS is more {word} than {rival} for two-triangles, mean over the sizes",
            words(difference), difference, WHY[word],
        )  # fmt: skip
    either = max(seen, key=lambda word: seen[word].value)
    result.compare(
        f"LLS compares favourably with {rival} either in time or in accuracy (abstract)",
        f"it is best in being {either}: {words(seen[either])}",
        seen[either],
        "; ".join(WHY.values()),
    )


def words(difference: Difference) -> str:
    value, half = difference.value, difference.half
    ratio, low, high = (10**power for power in (value, value - half, value + half))
    return f"the rival has {ratio:.3g} times as much, between {low:.3g} and {high:.3g}"


BENCHES = (
    Bench("noise_orders", "The order of mechanisms by error and by time", run, 6.0,
          paper=NOISE, files=edges_of("gowalla")),
)  # fmt: skip
