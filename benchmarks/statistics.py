"""How accurate statistics are: the relative error of every mechanism, and the noise of prefix sums.

    python -m benchmarks.statistics --data DIR [--plots FOLDER]

1. Noise amplitude 2S/ε against the cut-off k for the sum of the k smallest of 148,654 salaries
   (negative pay as 0), smooth sensitivity against corrected largest local sensitivities, δ = ε/2n.
2. Edges and two-triangles of subgraphs of gowalla induced by its first 100, 500 and 1,000 nodes of
   largest degree, triangles and stars of whole graphs, the median salary: median relative error.

A subgraph is a graph of its own here: one edge is what changes, whatever subset of nodes it is of.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from benchmarks.graphs import data_option, read_edge_list
from mechanisms.domains import (
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.kernels.executor import Inline
from mechanisms.kernels.graph import compressed_rows
from mechanisms.kernels.preparation import prepare_graph, prepare_totals
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.records import GraphRecords, Records, TableRecords
from mechanisms.statistics import MECHANISMS
from mechanisms.statistics.edges import Edges
from mechanisms.statistics.prefix_sum import local_changes
from mechanisms.statistics.quantile import Median
from mechanisms.statistics.smoothness import smooth_beta
from mechanisms.statistics.stars import Stars
from mechanisms.statistics.statistic import Statistic
from mechanisms.statistics.triangles import Triangles
from mechanisms.statistics.two_triangles import TwoTriangles
from mechanisms.statistics.validity import VALID

EPSILONS = (0.1, 0.5, 1.0, 2.0)
SIZES = (100, 500, 1000)
WHOLE = ("github", "enron", "dblp")
DELTA = ATTO // 10**6


def main() -> None:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    data_option(parser)
    parser.add_argument("--repeats", type=int, default=31, help="releases an error is taken of")
    parser.add_argument("--plots", type=Path, help="folder for the plots (needs matplotlib)")
    options = parser.parse_args()
    salaries = read_salaries(options.data)
    amplitudes = prefix_amplitudes(np.maximum(salaries, 0))
    errors: dict[str, list[float]] = {}
    print(f"\n{'median relative error at ε =':52}" + "".join(f"{e:>11}" for e in EPSILONS))
    sources, targets, nodes = read_edge_list(options.data, "gowalla")
    degrees = np.bincount(np.concatenate((sources, targets)), minlength=nodes)
    by_degree = np.argsort(-degrees, kind="stable")
    for size in SIZES:
        records, dataset = induced(sources, targets, by_degree[:size])
        for statistic in (Edges(), TwoTriangles()):
            every(f"gowalla {size}", statistic, records, dataset, options.repeats, errors)
    for name in WHOLE:
        records, dataset = prepared(*read_edge_list(options.data, name))
        for statistic in (Triangles(), Stars(2), Stars(3)):
            every(name, statistic, records, dataset, options.repeats, errors)
    attribute = NumericAttribute("pay", -1e6, 1e6, (-1e6, 1e6))
    count = len(salaries)
    table = TableRecords(
        {"pay": np.zeros(count, np.uint8)}, {"pay": salaries}, {"pay": np.sort(salaries)}
    )
    for relation in (NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE):
        dataset = Dataset("pay", relation, TableDomain((attribute,), rows=count, max_rows=200_000))
        every(f"salaries {relation}", Median("pay"), table, dataset, options.repeats, errors)
    if options.plots is not None:
        plot(options.plots, amplitudes, errors)


def read_salaries(folder: Path) -> NDArray[np.float64]:
    column = pyarrow.csv.read_csv(folder / "sf_salaries.csv.gz")["TotalPay"]
    return np.asarray(column.to_numpy(), np.float64)


def prefix_amplitudes(pay: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """2S/ε at every cut-off k = 1 … n, by both mechanisms, at ε = 1 and δ = ε/2n."""
    values = np.sort(np.floor(pay)).astype(np.int64)
    count = len(values)
    loss = PrivacyLoss(NANO, ATTO // (2 * count))
    beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
    assert beta is not None
    start = time.perf_counter()
    changes = local_changes(values)
    smooth = swept(changes.astype(float), exp(beta))
    middle = time.perf_counter()
    # Values are ascending, so levels are too: neighbouring levels are next to each other.
    sizes, level = np.unique(changes, return_inverse=True)
    levels = swept(sizes.astype(float), exp(beta))[level]
    end = time.perf_counter()
    same = np.isclose(smooth[1:], levels[1:], rtol=1e-9)
    ratio = levels[1:] / smooth[1:]
    print(f"prefix sum of {count} salaries, β = {beta:.5f}: noise amplitude 2S/ε at ε = 1")
    print(f"{'k':>9}{'smooth':>14}{'levels':>14}{'ratio':>9}")
    for k in (1, 100, 360, 369, 1000, 10_000, 50_000, 100_000, 148_000, count):
        print(f"{k:9}{2 * smooth[k]:14.1f}{2 * levels[k]:14.1f}{levels[k] / smooth[k]:9.3f}")
    print(f"equal at {same.mean():.1%} of the cut-offs; largest ratio {ratio.max():.4g}")
    print(f"all cut-offs in {middle - start:.3f} s (smooth) and {end - middle:.3f} s (levels)")
    return {"smooth_sensitivity": 2 * smooth[1:], "largest_local_sensitivities": 2 * levels[1:]}


def swept(changes: NDArray[np.float64], growth: float) -> NDArray[np.float64]:
    """max over j of changes_j·growth^{−|i − j|} at every i: one pass each way."""
    bounds: list[float] = changes.tolist()
    for order in (range(len(bounds) - 2, -1, -1), range(1, len(bounds))):
        step = 1 if order.step == -1 else -1
        for i in order:
            bounds[i] = max(bounds[i], bounds[i + step] / growth)
    return np.array(bounds)


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
    errors: dict[str, list[float]],
) -> None:
    """One line a mechanism that may release the statistic."""
    (part,) = statistic.parts(dataset)
    plan = part.plan(dataset, 10**6 * NANO)
    true = part.measure(records, dataset, plan, Inline()).value * plan.step
    for row in VALID:
        if row.statistic != statistic.name or dataset.neighbouring not in row.relations:
            continue
        label = f"{where} {part.what} {getattr(statistic, 'k', '')} {row.mechanism}"
        label = " ".join(label.split())
        found = []
        for epsilon in EPSILONS:
            loss = PrivacyLoss(round(epsilon * NANO), DELTA if row.delta else 0)
            released: list[Fraction] = [
                MECHANISMS[row.mechanism].release(
                    statistic, records, dataset, loss, SystemRandomness(), Inline()
                )
                for _ in range(repeats)
            ]
            found.append(float(np.median([float(abs(r - true) / abs(true)) for r in released])))
        errors[label] = found
        print(f"{label:52}" + "".join(f"{error:11.2e}" for error in found), flush=True)


def plot(
    folder: Path, amplitudes: dict[str, NDArray[np.float64]], errors: dict[str, list[float]]
) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots()
    for name, values in amplitudes.items():
        axes.plot(np.arange(1, len(values) + 1)[::50], values[::50], label=name)
    axes.set(xlabel="k", ylabel="noise amplitude 2S/ε", yscale="log")
    axes.legend()
    figure.savefig(folder / "prefix_sum.svg")
    groups: dict[str, dict[str, list[float]]] = {}
    for label, values in errors.items():
        where, _, mechanism = label.rpartition(" ")
        groups.setdefault(where, {})[mechanism] = values
    for where, lines in groups.items():
        figure, axes = pyplot.subplots()
        for mechanism, values in lines.items():
            axes.plot(EPSILONS, values, marker="o", label=mechanism)
        axes.set(xlabel="ε", ylabel="median relative error", xscale="log", yscale="log")
        axes.set_title(where)
        axes.legend()
        figure.savefig(folder / f"{where.replace(' ', '_')}.svg")
        pyplot.close(figure)


if __name__ == "__main__":
    main()
