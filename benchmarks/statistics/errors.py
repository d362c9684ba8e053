"""How accurate statistics are, mechanism by mechanism.

Median relative error at ε = 0.1, 0.5, 1, 2 (δ = 10⁻⁶ where one is taken): triangles, two-triangles
and stars of whole graphs, and the median salary. Errors on subgraphs and prefix sums, and times
against the size of a graph, are experiments of the papers. Noise of a known scale has an exact
median; that of noisy local sensitivity, whose scale is random, is sampled, as are medians of
salaries.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import exp, log

import numpy as np

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from app.service.warm import warm
from benchmarks.bench import Bench, Setting, edges_of
from benchmarks.data.graphs import graph_dataset, graph_records, read_edge_list
from benchmarks.data.tables import number_dataset, number_records, read_salaries
from benchmarks.result import Estimate, Result, median
from benchmarks.simulation import randomness
from benchmarks.statistics.induced_edges import RELEASED_BY, InducedEdges
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.executor import Inline
from mechanisms.model.records import Records
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
WHOLE = ("github", "enron", "dblp", "gowalla")
DELTA = ATTO // 10**6
PRINTED = "LLS with (5/2)·a_H as printed (not private)"
SAMPLED = "noisy_local_sensitivity"
#: By mechanism: whether it needs a δ.
TAKES_DELTA = {row.mechanism: row.delta for row in VALID}


def run(result: Result, setting: Setting) -> None:
    warm()
    times = setting.times(31)

    def show(where: str, statistic: Statistic, records: Records, dataset: Dataset) -> None:
        (part,) = statistic.parts(dataset)
        lines = errors(statistic, records, dataset, times)
        title = f"{where}: {part.what} {getattr(statistic, 'k', '')}".rstrip()
        result.plot(title, "median relative error", EPSILONS, lines, logarithmic_up=True)

    for name in WHOLE[:1] if setting.quick else WHOLE:
        edges = read_edge_list(setting.data, name)
        records, dataset = graph_records(edges, totals=True), graph_dataset(name, edges[2])
        for statistic in (Triangles(), TwoTriangles(), Stars(2), Stars(3)):
            show(name, statistic, records, dataset)
    pay = read_salaries(setting.data)
    for relation in (NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE):
        public = number_dataset(-1e4, 1e6, len(pay), 200_000, relation)
        show(f"salaries {relation}", Median("x"), number_records(pay), public)


def errors(
    statistic: Statistic, records: Records, dataset: Dataset, times: int
) -> dict[str, list[Estimate]]:
    """Median |error| / |value| of every mechanism at each ε, and of the printed LLS; ``times``
    releases where noise has no known scale."""
    (part,) = statistic.parts(dataset)
    lines: dict[str, list[Estimate]] = {}
    for epsilon in EPSILONS:
        plan = part.plan(dataset, round(epsilon * NANO))
        loss = PrivacyLoss(round(epsilon * NANO), DELTA)
        context = QueryContext(records, dataset, loss, randomness(), Inline())
        measured = part.measure(context, plan)
        true = measured.value * plan.step
        for name in mechanisms_of(statistic, dataset):
            if name == SAMPLED or isinstance(statistic, Median):
                drawn = releases(statistic, name, records, dataset, epsilon, times)
                middle, half = median([float(abs(release - true)) for release in drawn])
            else:
                middle, half = typical(name, measured, plan.cap, loss) * float(plan.step), 0.0
            size = float(abs(true))
            lines.setdefault(name, []).append((middle / size, half / size))
        if isinstance(statistic, TwoTriangles):
            beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
            assert beta is not None
            harvest = measured.levels.fine.harvest  # type: ignore[union-attr]
            steps = np.arange(dataset.domain.nodes - 2 - harvest + 1)  # type: ignore[union-attr]
            printed = float((2.5 * (harvest + steps) * np.exp(-beta * steps)).max())
            error = 2 * printed / epsilon * log(2) / float(abs(true))
            lines.setdefault(PRINTED, []).append((error, 0.0))
    return lines


def typical(mechanism: str, measured: Measurement, cap: int, loss: PrivacyLoss) -> float:
    """The exact median of |noise| in steps of the grid."""
    epsilon = loss.epsilon_nano / NANO
    if mechanism == "laplace":
        # Discrete Laplace noise with p = e^−rate has P(|noise| ≤ m) = 1 − 2p^{m+1}/(1 + p). The
        # median is the least m at which this reaches 1/2.
        rate = epsilon / cap
        return max(0.0, float(np.ceil(log(4 / (1 + exp(-rate))) / rate - 1)))
    if mechanism == "ladder":
        return middle_rung(rungs(measured.local), epsilon)  # type: ignore[arg-type]
    noise = MECHANISMS[mechanism]
    assert isinstance(noise, SmoothNoise)
    beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
    bound = noise.bound(measured)
    assert bound is not None
    scale = cap if beta is None else min(bound.smooth(beta), cap)
    # Laplace noise rounded down is g or −1 − g, for a geometric g. So P(|noise| ≤ m) = 1 − p^m·(1 +
    # p)/2 with p = e^−rate.
    rate = epsilon / (2 * scale)
    return max(0.0, float(np.ceil(log(1 + exp(-rate)) / rate)))


def middle_rung(widths: np.ndarray, epsilon: float) -> float:
    """The median distance of the ladder's answer from the value."""
    rate = epsilon / 2
    counts = weights(widths).astype(float)
    # Rung s of the ladder has the weight counts[s]·e^{−rate·s}. All rungs from number ``last`` on
    # are equally wide, so their weights add up as a geometric series.
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
    context = QueryContext(records, dataset, loss, randomness(), Inline())
    return [release(statistic, context) for _ in range(count)]


BENCHES = (
    Bench("statistics", "How accurate are statistics by each mechanism?", run, 90.0,
          files=(*edges_of(*WHOLE), "sf_salaries.csv.gz")),
)  # fmt: skip
