"""How accurate statistics are, mechanism by mechanism, and how their time grows with the graph.

Median relative error at ε = 0.1, 0.5, 1, 2 (δ = 10⁻⁶ where one is taken): triangles, two-triangles
and stars of whole graphs, and the median salary; then seconds of preparation and of an answer
against the size of a subgraph. A subgraph is the one that the nodes of largest degree induce: a
graph of its own, of which one edge is what changes. Errors on subgraphs and prefix sums are
experiments of the papers. Noise of a known scale has an exact median; that of noisy local
sensitivity, whose scale is random, is sampled, as are medians of salaries.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from math import exp, log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from app.service.warm import warm
from benchmarks.bench import Bench, Setting, edges_of
from benchmarks.data.graphs import read_edge_list
from benchmarks.data.tables import read_salaries
from benchmarks.result import Estimate, Result, median, timed
from benchmarks.rounds import wall
from benchmarks.simulation import randomness
from benchmarks.statistics.induced_edges import RELEASED_BY, InducedEdges
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
from mechanisms.model.records import GraphRecords, Records, TableRecords
from mechanisms.statistics import MECHANISMS
from mechanisms.statistics.quantile import Median
from mechanisms.statistics.release.ladder import rungs, weights
from mechanisms.statistics.release.smooth import SmoothNoise
from mechanisms.statistics.smoothness import smooth_beta
from mechanisms.statistics.stars import Stars
from mechanisms.statistics.statistic import Measurement, Statistic
from mechanisms.statistics.triangles import Triangles, TwoTriangles
from mechanisms.statistics.validity import VALID

EPSILONS = (0.1, 0.5, 1.0, 2.0)
SIZES = (100, 500, 1000)
#: The last is the whole of gowalla.
TIMED = (*SIZES, 10_000, 50_000, 196_591)
WHOLE = ("github", "enron", "dblp", "gowalla")
DELTA = ATTO // 10**6
PRINTED = "LLS with (5/2)·a_H as printed (not private)"
SAMPLED = "noisy_local_sensitivity"
#: Which mechanisms take a δ.
TAKES_DELTA = {row.mechanism: row.delta for row in VALID}


def run(setting: Setting) -> Result:
    result = Result()
    warm()
    times = setting.times(31)

    def show(where: str, statistic: Statistic, records: Records, dataset: Dataset) -> None:
        (part,) = statistic.parts(dataset)
        lines = errors(statistic, records, dataset, times)
        title = f"{where}: {part.what} {getattr(statistic, 'k', '')}".rstrip()
        result.plot(title, "median relative error", EPSILONS, lines, logarithmic_up=True)

    for name in WHOLE[:1] if setting.quick else WHOLE:
        records, dataset = prepared(*read_edge_list(setting.data, name))
        for statistic in (Triangles(), TwoTriangles(), Stars(2), Stars(3)):
            show(name, statistic, records, dataset)
    for relation in (NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE):
        show(f"salaries {relation}", Median("pay"), *salaries(setting.data, relation))
    sizes = TIMED[: setting.size(len(TIMED), 3)]
    seconds = growth(setting.data, times, sizes)
    result.plot("two-triangles of gowalla: time against size", "seconds", list(sizes),
                {name: [timed(value) for value in line] for name, line in seconds.items()},
                "nodes", logarithmic_up=True)  # fmt: skip
    return result


def salaries(data: Path, relation: NeighbouringRelation) -> tuple[TableRecords, Dataset]:
    pay = read_salaries(data)
    columns = {"pay": np.zeros(len(pay), np.uint8)}, {"pay": pay}, {"pay": np.sort(pay)}
    attribute = NumericAttribute("pay", -1e4, 1e6, (-1e4, 1e6))
    domain = TableDomain((attribute,), rows=len(pay), max_rows=200_000)
    return TableRecords(*columns), Dataset("pay", relation, domain)


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


def errors(
    statistic: Statistic, records: Records, dataset: Dataset, times: int
) -> dict[str, list[Estimate]]:
    """Median |error| / |value| of every mechanism at each ε, and of the printed LLS; ``times``
    releases where noise has no known scale."""
    (part,) = statistic.parts(dataset)
    names = list(mechanisms_of(statistic, dataset))
    lines: dict[str, list[Estimate]] = {name: [] for name in names}
    for epsilon in EPSILONS:
        plan = part.plan(dataset, round(epsilon * NANO))
        measured = part.measure(records, dataset, plan, Inline())
        true = float(abs(measured.value * plan.step))
        loss = PrivacyLoss(round(epsilon * NANO), DELTA)
        for name in names:
            if name == SAMPLED or isinstance(statistic, Median):
                drawn = releases(statistic, name, records, dataset, epsilon, times)
                off = np.array([float(abs(r - measured.value * plan.step)) for r in drawn])
                middle, half = median(off)
                lines[name].append((middle / true, half / true))
                continue
            middle = typical(name, measured, plan.cap, loss) * float(plan.step)
            lines[name].append((middle / true, 0.0))
        if isinstance(statistic, TwoTriangles):
            beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
            assert beta is not None
            harvest = measured.levels.fine.harvest  # type: ignore[union-attr]
            steps = np.arange(dataset.domain.nodes - 2 - harvest + 1)  # type: ignore[union-attr]
            printed = float((2.5 * (harvest + steps) * np.exp(-beta * steps)).max())
            error = 2 * printed / epsilon * log(2) / true
            lines.setdefault(PRINTED, []).append((error, 0.0))
    return lines


def typical(mechanism: str, measured: Measurement, cap: int, loss: PrivacyLoss) -> float:
    """The exact median of |noise| in steps of the grid."""
    epsilon = loss.epsilon_nano / NANO
    if mechanism == "laplace":
        # Discrete: P(|noise| ≤ m) = 1 − 2p^{m+1}/(1 + p).
        rate = epsilon / cap
        return max(0.0, float(np.ceil(log(4 / (1 + exp(-rate))) / rate - 1)))
    if mechanism == "ladder":
        return middle_rung(rungs(measured.local), epsilon)  # type: ignore[arg-type]
    noise = MECHANISMS[mechanism]
    assert isinstance(noise, SmoothNoise)
    beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
    scale = cap if beta is None else min(noise.bound(measured).smooth(beta), cap)
    # ⌊Laplace⌋ is g or −1 − g, g geometric: P(|noise| ≤ m) = 1 − p^m·(1 + p)/2.
    rate = epsilon / (2 * scale)
    return max(0.0, float(np.ceil(log(1 + exp(-rate)) / rate)))


def middle_rung(widths: np.ndarray, epsilon: float) -> float:
    """The median distance of the ladder's answer from the value."""
    rate = epsilon / 2
    counts = weights(widths).astype(float)
    # Rung s has weight counts[s]·e^{−λs}; the tail is geometric from rung M + 1 on.
    mass = counts * np.exp(-rate * np.arange(len(counts)))
    cap, last = float(widths[-1]), len(widths)
    mass[-1] = 2 * cap * exp(-rate * last) / -np.expm1(-rate)
    half = mass.sum() / 2
    reached = np.cumsum(mass)
    rung = int(np.searchsorted(reached, half))
    if rung == 0:
        return 0.0
    passed = float(widths[: rung - 1].sum())
    inside = half - reached[rung - 1]
    while rung >= last:
        here = 2 * cap * exp(-rate * rung)
        if inside <= here:
            break
        inside, passed, rung = inside - here, passed + cap, rung + 1
    width = float(widths[min(rung, last) - 1])
    return passed + float(np.ceil(inside / (2 * exp(-rate * rung)))) if width else passed


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


def growth(data: Path, repeats: int, sizes: Sequence[int] = TIMED) -> dict[str, list[float]]:
    """Seconds of preparation (all columns and totals), and median seconds of an answer of
    two-triangles at ε = 1 by each mechanism, at each number of nodes."""
    sources, targets, _ = read_edge_list(data, "gowalla")
    order = by_degree(sources, targets)
    names = [row.mechanism for row in VALID if row.statistic == "two_triangles"]
    seconds: dict[str, list[float]] = {name: [] for name in ("preparation", *names)}
    for size in sizes:
        start = time.perf_counter()
        records, dataset = induced(sources, targets, order[:size])
        seconds["preparation"].append(time.perf_counter() - start)
        for name in names:
            way = wall(partial(releases, TwoTriangles(), name, records, dataset, 1.0, 1))
            seconds[name].append(float(np.median([way() for _ in range(repeats)])))
    return seconds


BENCHES = (
    Bench(
        "statistics",
        "How accurate are statistics by each mechanism, and how does their time grow?",
        run,
        120.0,
        files=(*edges_of(*WHOLE), "sf_salaries.csv.gz"),
    ),
)
