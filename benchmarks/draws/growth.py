"""How work grows with the records: exponents of edges, rows and candidates, and no cliff.

Each size is measured in seconds of a processor on one thread, the sizes in turn. The exponent is
that of the line through all sizes on logarithmic axes. A cliff is a size that is far off this line,
such as the first that leaves a cache or takes another algorithm.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.data.graphs import graph_records, random_edges
from benchmarks.result import Result
from benchmarks.rounds import Rounds, Way, processor
from mechanisms.kernels.level_counts import all_level_tables
from mechanisms.model.domains import CategoricalAttribute, TableDomain
from mechanisms.model.executor import Inline
from mechanisms.model.joint_influence import Together
from mechanisms.model.records import TableRecords
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import score_bits
from mechanisms.selection import LAPLACE, SELECTORS

LOSS, K = PrivacyLoss.parse("1"), 10
EDGES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000)
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
CANDIDATES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
#: The number of nodes per edge in the made-up graphs.
NODES = 0.15
LEVELS = tuple(map(str, range(8)))
Work = Callable[[], object]


def prepared_graph(edges: int, skew: float) -> Work:
    """Egocentric measures of all nodes of a graph whose degrees follow a power law.

    The degree of the node of rank r falls like r^−(1 − 1/skew), so the share of nodes of degree d
    falls like d^−γ with γ = 1 + skew/(skew − 1).
    """
    nodes = int(NODES * edges)
    sources, targets = random_edges(edges, nodes, skew)
    return partial(graph_records, (sources, targets, nodes))


def counted_table(rows: int) -> Work:
    """The stored tables of counts of six attributes."""
    names = "ABCDEF"
    domain = TableDomain(tuple(CategoricalAttribute(one, LEVELS) for one in names))
    random = np.random.default_rng(rows)
    codes = {one: random.integers(0, len(LEVELS), rows).astype(np.uint8) for one in names}
    return partial(all_level_tables, TableRecords(codes, {}), domain, Inline())


def peeled(candidates: int) -> Work:
    scores, selector = np.arange(candidates, dtype=np.int64), SELECTORS["permute_and_flip"]
    source = SystemRandomness()
    return partial(selector.top, scores, score_bits(K), LOSS, K, "peeled", source, Inline())


def noisy(candidates: int) -> Work:
    scores, together = np.arange(candidates, dtype=np.int64), Together(candidates, 1, moving=2)
    return partial(LAPLACE.top, scores, together, LOSS, K, SystemRandomness(), Inline())


#: For each quantity that grows, its sizes and its kinds of work. A kind of work has a function that
#: prepares it at a size, and the largest exponent with which its time may grow.
GROWTH: Mapping[str, tuple[Sequence[int], Mapping[str, tuple[Callable[[int], Work], float]]]] = {
    "edges": (
        EDGES,
        {
            "preparation, γ = 4": (partial(prepared_graph, skew=1.5), 1.3),
            "preparation, γ = 2.5": (partial(prepared_graph, skew=3.0), 1.3),
        },
    ),
    "rows": (ROWS, {"tables of counts": (counted_table, 1.1)}),
    "candidates": (
        CANDIDATES,
        {"permute-and-flip peeled": (peeled, 1.1), "laplace": (noisy, 1.1)},
    ),
}
SECONDS = {"edges": 900.0, "rows": 30.0, "candidates": 30.0}


def run(result: Result, setting: Setting, name: str) -> None:
    sizes, works = GROWTH[name]
    for what, (work, _) in works.items():
        ways = {size: processor(work(size)) for size in sizes_of(sizes, setting)}
        # The largest graph takes minutes, so each graph is measured once. So long a run needs no
        # repetition.
        report(result, f"{name}, {what}", ways, 1 if name == "edges" else setting.times(5))


def sizes_of(sizes: Sequence[int], setting: Setting) -> Sequence[int]:
    """The large ones take minutes, so ``--quick`` leaves them out."""
    return sizes[:3] if setting.quick else sizes


def report(result: Result, name: str, ways: Mapping[int, Way], times: int) -> None:
    """Measure the seconds of a processor at each size, and how they grow."""
    rounds = Rounds.of(
        "seconds of a processor", {f"{size:,}": way for size, way in ways.items()}, times
    ).report(result, name)
    exponent, off = fitted(list(ways), [rounds.median(f"{size:,}") for size in ways])
    result.measure(f"{name}: exponent", exponent)
    result.measure(f"{name}: farthest from the fit", off, "×")


def fitted(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """The exponent of the least squares line, and the largest factor between it and a size."""
    across, up = np.log(sizes), np.log(seconds)
    exponent, start = np.polyfit(across, up, 1)
    off = np.abs(up - exponent * across - start).max()
    return float(exponent), float(np.exp(off))


def bars(name: str, most: Mapping[str, float]) -> tuple[Bar, ...]:
    """Those of what grows, by the most that the exponent of each work may be."""
    exponents = (Bar(f"{name}, {what}: exponent", most=limit) for what, limit in most.items())
    return (*exponents, Bar("*: farthest from the fit", most=2.0))


BENCHES = tuple(
    Bench(
        f"growth.{name}",
        f"How does work grow with {name}, and is there a cliff?",
        partial(run, name=name),
        SECONDS[name],
        bars=bars(name, {what: most for what, (_, most) in works.items()}),
    )
    for name, (_, works) in GROWTH.items()
)
