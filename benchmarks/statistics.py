"""How accurate statistics are, mechanism by mechanism, and how their time grows with the graph.

    python -m benchmarks.statistics --data DIR [--plots FOLDER] [--parts …]

Median relative error at ε = 0.1, 0.5, 1, 2 (δ = 10⁻⁶ where one is taken): edges and two-triangles
of subgraphs of gowalla, triangles, two-triangles and stars of whole graphs, the median salary; then
seconds of preparation and of an answer against the size of the subgraph.

A subgraph is the one that the nodes of largest degree induce. It is a graph of its own, of which
one edge is what changes; edges are counted under a change of one node as well
(``benchmarks.induced_edges``). Prefix sums are in ``benchmarks.prefix_sums``.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from app.service.warm import warm
from benchmarks.graphs import data_option, read_edge_list
from benchmarks.induced_edges import RELEASED_BY, InducedEdges, taking_part
from benchmarks.prefix_sums import read_salaries
from benchmarks.simulation import randomness
from mechanisms.kernels.graph import compressed_rows
from mechanisms.kernels.preparation import prepare_graph, prepare_totals
from mechanisms.model.domains import (
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.records import GraphRecords, PrefixRecords, Records, TableRecords
from mechanisms.statistics import MECHANISMS
from mechanisms.statistics.edges import Edges
from mechanisms.statistics.quantile import Median
from mechanisms.statistics.stars import Stars
from mechanisms.statistics.statistic import Statistic
from mechanisms.statistics.triangles import Triangles
from mechanisms.statistics.two_triangles import TwoTriangles
from mechanisms.statistics.validity import VALID

EPSILONS = (0.1, 0.5, 1.0, 2.0)
SIZES = (100, 500, 1000)
#: The last is the whole of gowalla.
TIMED = (*SIZES, 10_000, 50_000, 196_591)
WHOLE = ("github", "enron", "dblp", "gowalla")
DELTA = ATTO // 10**6
PARTS = ("subgraphs", "whole", "median", "growth")
#: Which mechanisms take a δ.
TAKES_DELTA = {row.mechanism: row.delta for row in VALID}

Errors = dict[str, list[float]]


def main() -> None:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    data_option(parser)
    parser.add_argument("--repeats", type=int, default=31, help="releases an error is taken of")
    parser.add_argument("--plots", type=Path, help="folder for the plots (needs matplotlib)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    warm()
    errors, seconds = Errors(), Errors()
    print(f"{'median relative error at ε =':60}" + "".join(f"{e:>11}" for e in EPSILONS))
    if "subgraphs" in options.parts:
        subgraphs(options.data, options.repeats, errors)
    if "whole" in options.parts:
        for name in WHOLE:
            records, dataset = prepared(*read_edge_list(options.data, name))
            for statistic in (Triangles(), TwoTriangles(), Stars(2), Stars(3)):
                every(name, statistic, records, dataset, options.repeats, errors)
    if "median" in options.parts:
        median(options.data, options.repeats, errors)
    if "growth" in options.parts:
        seconds = growth(options.data, options.repeats)
    if options.plots is not None:
        plot(options.plots, errors, seconds)


def subgraphs(data: Path, repeats: int, errors: Errors) -> None:
    sources, targets, nodes = read_edge_list(data, "gowalla")
    for size in SIZES:
        chosen = by_degree(sources, targets)[:size]
        records, dataset = induced(sources, targets, chosen)
        for statistic in (Edges(), TwoTriangles()):
            every(f"gowalla {size}", statistic, records, dataset, repeats, errors)
        asked = InducedEdges((sources, targets), taking_part(nodes, chosen))
        every(f"gowalla {size} (node)", asked, PrefixRecords(0), dataset, repeats, errors)


def median(data: Path, repeats: int, errors: Errors) -> None:
    salaries = read_salaries(data)
    attribute = NumericAttribute("pay", -1e4, 1e6, (-1e4, 1e6))
    count = len(salaries)
    table = TableRecords(
        {"pay": np.zeros(count, np.uint8)}, {"pay": salaries}, {"pay": np.sort(salaries)}
    )
    for relation in (NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE):
        dataset = Dataset("pay", relation, TableDomain((attribute,), rows=count, max_rows=200_000))
        every(f"salaries {relation}", Median("pay"), table, dataset, repeats, errors)


def by_degree(sources: NDArray[np.int32], targets: NDArray[np.int32]) -> NDArray[np.int64]:
    """The nodes, those of largest degree first."""
    return np.argsort(-np.bincount(np.concatenate((sources, targets))), kind="stable")


def prepared(
    sources: NDArray[np.int32], targets: NDArray[np.int32], nodes: int
) -> tuple[GraphRecords, Dataset]:
    rows = compressed_rows(sources, targets, nodes)
    columns = prepare_graph(*rows, Inline())
    totals = prepare_totals(*rows, columns["co_degree"], Inline())
    dataset = Dataset("graph", NeighbouringRelation.EDGE, GraphDomain(nodes, nodes - 1))
    return GraphRecords(*rows, columns, totals), dataset


def induced(
    sources: NDArray[np.int32], targets: NDArray[np.int32], chosen: NDArray[np.int64]
) -> tuple[GraphRecords, Dataset]:
    """The subgraph of the chosen nodes."""
    place = np.full(int(max(sources.max(), targets.max())) + 1, -1, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    inside = (place[sources] >= 0) & (place[targets] >= 0)
    return prepared(place[sources[inside]], place[targets[inside]], len(chosen))


def every(
    where: str,
    statistic: Statistic,
    records: Records,
    dataset: Dataset,
    repeats: int,
    errors: Errors,
) -> None:
    """One line a mechanism that may release the statistic."""
    (part,) = statistic.parts(dataset)
    plan = part.plan(dataset, 10**6 * NANO)
    true = part.measure(records, dataset, plan, Inline()).value * plan.step
    for mechanism in mechanisms_of(statistic, dataset):
        label = f"{where} {part.what} {getattr(statistic, 'k', '')} {mechanism}"
        label = " ".join(label.split())
        found = []
        for epsilon in EPSILONS:
            released = releases(statistic, mechanism, records, dataset, epsilon, repeats)
            found.append(float(np.median([float(abs(r - true) / abs(true)) for r in released])))
        errors[label] = found
        print(f"{label:60}" + "".join(f"{error:11.2e}" for error in found), flush=True)


def mechanisms_of(statistic: Statistic, dataset: Dataset) -> Iterable[str]:
    if isinstance(statistic, InducedEdges):
        return RELEASED_BY
    return [
        row.mechanism
        for row in VALID
        if row.statistic == statistic.name and dataset.neighbouring in row.relations
    ]


def releases(
    statistic: Statistic,
    mechanism: str,
    records: Records,
    dataset: Dataset,
    epsilon: float,
    count: int,
) -> list[Fraction]:
    loss = PrivacyLoss(round(epsilon * NANO), DELTA if TAKES_DELTA[mechanism] else 0)
    release = MECHANISMS[mechanism].release
    return [
        release(statistic, records, dataset, loss, randomness(), Inline()) for _ in range(count)
    ]


def growth(data: Path, repeats: int) -> dict[str, list[float]]:
    """Seconds of preparation, and median seconds of an answer at ε = 1, at each of ``TIMED``."""
    sources, targets, _ = read_edge_list(data, "gowalla")
    order = by_degree(sources, targets)
    names = [row.mechanism for row in VALID if row.statistic == "two_triangles"]
    print("\nseconds: preparation (all columns and totals), and an answer of two-triangles by")
    print(f"{'nodes':>9}{'edges':>9}{'preparation':>13}" + "".join(f"{n[:22]:>24}" for n in names))
    seconds: dict[str, list[float]] = {name: [] for name in ("preparation", *names)}
    for size in TIMED:
        start = time.perf_counter()
        records, dataset = induced(sources, targets, order[:size])
        seconds["preparation"].append(time.perf_counter() - start)
        for name in names:
            runs = []
            for _ in range(repeats):
                start = time.perf_counter()
                releases(TwoTriangles(), name, records, dataset, 1.0, 1)
                runs.append(time.perf_counter() - start)
            seconds[name].append(float(np.median(runs)))
        row = [values[-1] for values in seconds.values()]
        print(f"{size:9}{len(records.indices) // 2:9}{row[0]:13.4f}", end="")
        print("".join(f"{value:24.6f}" for value in row[1:]), flush=True)
    return seconds


def plot(folder: Path, errors: Errors, seconds: dict[str, list[float]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)

    def save(name: str, lines: dict[str, list[float]], at: tuple[float, ...], of: str) -> None:
        figure, axes = pyplot.subplots()
        for label, values in lines.items():
            axes.plot(at, values, marker="o", label=label)
        across = "ε" if at is EPSILONS else "nodes"
        axes.set(xlabel=across, ylabel=of, xscale="log", yscale="log", title=name)
        axes.legend()
        figure.savefig(folder / f"{name.replace(' ', '_')}.svg")
        pyplot.close(figure)

    groups: dict[str, Errors] = {}
    for label, values in errors.items():
        where, _, mechanism = label.rpartition(" ")
        groups.setdefault(where, {})[mechanism] = values
    for where, lines in groups.items():
        save(where, lines, EPSILONS, "median relative error")
    if seconds:
        save("two-triangles of gowalla", seconds, TIMED, "seconds")


if __name__ == "__main__":
    main()
