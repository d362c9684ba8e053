"""Metrics and clusters against ε: contexts, matrices, Ward clusters, neighbours, private k-means.

    python -m benchmarks.distances --data DIR [--quick]

30 repetitions, k = 3, h = 0.3; numeric attributes in five public bins. ε is that of one target for
contexts and matrices, that of the whole metric for clusters and neighbours. Contexts are compared
by the adjusted F-score with what the same way would choose without noise, matrices by Pearson's
correlation (targets of three values or more). Private rows are read to evaluate, here alone.

Expected, status 1 when a sign flips beyond a 99 % interval: the baseline's correlation is not above
the others' on dermatology and soybean; correlations rise with ε; so do adjusted F-scores, but for
``mean_su``, which small tables drown. Clusters, neighbours and k-means are reported, not judged.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.graphs import data_option
from benchmarks.metric_evaluation import (
    SIZE,
    Floats,
    Truth,
    adjusted_f,
    adjusted_rand,
    correlation,
    interval,
    neighbour_accuracy,
    one_hot_points,
    points,
    ward,
)
from benchmarks.tables import SYNTHETIC, Table, read_table, synthetic
from mechanisms.clustering.encoding import Encoding, learned, one_hot
from mechanisms.clustering.initial import drawn_centres
from mechanisms.clustering.lloyd import lloyd
from mechanisms.distances.learning import TargetMetric, learn
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import Plan, plan
from mechanisms.distances.rules import Contexts
from mechanisms.kernels.executor import Inline
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.sensitivity import Sensitivity

RESULTS = Path(__file__).parent / "results"
CONTEXT_TABLES = ("dermatology", "soybean", "cmc", "mushroom", "nltcs", "adult_full")
CLUSTER_TABLES = ("dermatology", "soybean", "mushroom", "adult")
EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.75, 2.5)
#: Rows that Ward's clustering and neighbours look at, the first of them.
SAMPLE = 2000
CLUSTERING_LOSS, ITERATIONS, GRID_BITS = 2.0, 5, 16


@dataclass(frozen=True)
class Arm:
    """One way to learn, and what it aims at."""

    name: str
    options: Options

    def true(self, truth: Truth) -> Contexts:
        if self.options.context is Context.BASELINE:
            return truth.rule(self.options.rule)
        return truth.drawn(self.options.context)


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


def private(table: Table, public: Plan, epsilon: float) -> list[TargetMetric]:
    loss = PrivacyLoss.parse(repr(epsilon))
    return learn(table.records, public, loss, SystemRandomness(), Inline())


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    data_option(parser)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--runs", type=int, default=100, help="runs of private k-means")
    parser.add_argument("--targets", type=int, default=8, help="targets a table, evenly spread")
    parser.add_argument("--quick", action="store_true", help="two tables, three ε")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    epsilons: Sequence[float] = EPSILONS
    names, clustered, made = CONTEXT_TABLES, CLUSTER_TABLES, [*SYNTHETIC]
    if options.quick:
        epsilons, names, clustered, made = (0.1, 0.5, 2.5), names[:2], clustered[:2], made[:1]
        options.times, options.runs, options.targets = 10, 10, 3
    ok, results = True, {}
    for name in names:
        good, results[name] = contexts_of(Truth(read_table(options.data, name)), options, epsilons)
        ok &= good
    for name in clustered:
        table = read_table(options.data, name)
        results[f"{name}, clusters"] = clusters_of(table, options, epsilons)
        results[f"{name}, k-means"] = k_means_of(table, options, epsilons)
    for name in made:
        for noise in (0.1, 0.2, 0.3):
            table = synthetic(name, noise)
            results[f"{table.name}, clusters"] = clusters_of(table, options, epsilons)
    (RESULTS / "distances.json").write_text(json.dumps({"epsilons": epsilons, **results}))
    plot(results, epsilons, RESULTS / "distances.png")
    return 0 if ok else 1


def contexts_of(truth: Truth, options: Namespace, epsilons: Sequence[float]) -> tuple[bool, object]:
    """Adjusted F and correlation of every arm, (times,) each, means over targets."""
    table = truth.table
    spread = np.linspace(0, len(truth.public.targets) - 1, options.targets)
    targets = sorted({round(place) for place in spread})
    scores: dict[str, dict[str, list[Floats]]] = {}
    for arm in arms():
        true = arm.true(truth)
        best = {one.attribute.name: one.matrix for one in truth.metric(true)}
        scores[arm.name] = {"adjusted F": [], "correlation": []}
        plans = {
            t: plan(table.dataset, arm.options, truth.public.attributes[t].name) for t in targets
        }
        for epsilon in epsilons:
            f, r = [], []
            for _ in range(options.times):
                quality, likeness = [], []
                for target, public in plans.items():
                    (one,) = private(table, public, epsilon)
                    numbers = [truth.public.attributes.index(a) for a in one.context]
                    others = len(truth.public.attributes) - 1
                    quality.append(adjusted_f(numbers, true[target], others))
                    if len(one.points) > 2:
                        likeness.append(correlation(one.matrix, best[one.attribute.name]))
                f.append(np.mean(quality))
                r.append(np.mean(likeness) if likeness else np.nan)
            scores[arm.name]["adjusted F"].append(np.array(f))
            scores[arm.name]["correlation"].append(np.array(r))
    for measure in ("adjusted F", "correlation"):
        lines = {name: found[measure] for name, found in scores.items()}
        show(f"{table.name}: {measure} of contexts first and baseline", lines, epsilons)
    return held(table.name, scores), means(scores)


def held(name: str, scores: dict[str, dict[str, list[Floats]]]) -> bool:
    """Print and count every expectation whose sign is flipped beyond its interval."""
    gaps: list[tuple[str, Floats]] = []
    for arm, found in scores.items():
        for measure, line in found.items():
            if measure == "adjusted F" and arm == "mean_su":
                continue
            gaps.append((f"{measure} of {arm} rises with ε", line[-1] - line[0]))
    if name in ("dermatology", "soybean"):
        baseline = scores["baseline mean_su"]["correlation"]
        for arm, found in scores.items():
            if not arm.startswith("baseline"):
                gap = np.concatenate(found["correlation"]) - np.concatenate(baseline)
                gaps.append((f"correlation of {arm} is not below the baseline's", gap))
    ok = True
    for what, gap in gaps:
        if np.isnan(gap).any():
            continue
        mean, half = interval(gap)
        flipped = mean + half < 0
        ok &= not flipped
        print(f"  {what}: {mean:+.3f} ± {half:.3f}  {'FAILS' if flipped else 'holds'}")
    return ok


def clusters_of(table: Table, options: Namespace, epsilons: Sequence[float]) -> object:
    """Adjusted Rand index of Ward clusters, and neighbour accuracy, by the whole metric."""
    truth, rows = Truth(table), np.arange(min(table.rows, SAMPLE))
    classes = table.classes[rows]
    count = len(np.unique(classes))
    measures: dict[str, Callable[[Floats], float]] = {
        "Rand": lambda found: adjusted_rand(ward(found, count), classes),
        "5-NN": lambda found: neighbour_accuracy(found, classes),
    }
    still = {
        "one-hot": one_hot_points(table, rows),
        "DILCA_M": points(table, truth.metric(truth.rule(Rule.MEAN_SU)), rows),
        "DILCA_RR": points(table, truth.metric(truth.rule(Rule.NOT_REDUNDANT)), rows),
    }
    lines: dict[str, list[Floats]] = {}
    for measure, score in measures.items():
        for name, found in still.items():
            lines[f"{measure} {name}"] = [np.array([score(found)])] * len(epsilons)
    ways = [
        Options(Context.MAX_RELEVANCE, context_size=SIZE),
        Options(Context.BASELINE, rule=Rule.MEAN_SU),
    ]
    times = max(2, options.times // 3)
    for way in ways:
        public = plan(table.dataset, way, None)
        for epsilon in epsilons:
            learned_points = [
                points(table, private(table, public, epsilon), rows) for _ in range(times)
            ]
            for measure, score in measures.items():
                found = np.array([score(each) for each in learned_points])
                lines.setdefault(f"{measure} {way.context}", []).append(found)
    show(f"{table.name}: Ward clusters and neighbours, first {len(rows)} rows", lines, epsilons)
    return {name: [float(values.mean()) for values in line] for name, line in lines.items()}


def k_means_of(table: Table, options: Namespace, epsilons: Sequence[float]) -> object:
    """Adjusted Rand index of the rows' nearest private centres: ε = 2 for clusters and the given
    one for the metric; one-hot codes get the sum; the third metric has no noise."""
    truth = Truth(table)
    rows, count = np.arange(table.rows), len(np.unique(table.classes))
    public = plan(table.dataset, Options(Context.MAX_RELEVANCE, context_size=SIZE), None)
    free = learned(truth.metric(truth.rule(Rule.MEAN_SU)), GRID_BITS)
    lines: dict[str, list[Floats]] = {"learned": [], "one-hot": [], "metric without noise": []}
    for epsilon in epsilons:
        found: dict[str, list[float]] = {name: [] for name in lines}
        for _ in range(options.runs):
            made = learned(private(table, public, epsilon), GRID_BITS)
            codes = one_hot(truth.public.attributes, GRID_BITS)
            for name, encoding, loss in (
                ("learned", made, CLUSTERING_LOSS),
                ("one-hot", codes, CLUSTERING_LOSS + epsilon),
                ("metric without noise", free, CLUSTERING_LOSS),
            ):
                found[name].append(adjusted_rand(
                    assigned(table, encoding, loss, count, rows), table.classes))  # fmt: skip
        for name, values in found.items():
            lines[name].append(np.array(values))
    show(f"{table.name}: private k-means, adjusted Rand index", lines, epsilons)
    return {name: [float(values.mean()) for values in line] for name, line in lines.items()}


def assigned(table: Table, encoding: Encoding, loss: float, count: int, rows: Floats) -> Floats:
    """Labels of the private rows: an evaluation, never a release."""
    initial = drawn_centres(encoding.attributes, count, SystemRandomness())
    share = Fraction(repr(loss)) / ITERATIONS
    losses = (PrivacyLoss(int(share * 10**9)),) * ITERATIONS
    start = np.array([encoding.point(record) for record in initial])
    centres = lloyd(table.records, encoding, start, losses, 2, SystemRandomness(), Inline())
    parts = zip(encoding.attributes, encoding.points, strict=True)
    where = np.concatenate([p[table.records.codes[a.name][rows]] for a, p in parts], axis=1)
    apart = (centres**2).sum(axis=1) - 2 * where @ centres.T
    labels: Floats = apart.argmin(axis=1)
    return labels


def show(title: str, lines: dict[str, list[Floats]], epsilons: Sequence[float]) -> None:
    if all(np.isnan(values).all() for line in lines.values() for values in line):
        return
    print(f"\n{title}, mean ± 99 %, at ε")
    print(f"{'':26}" + "".join(f"{epsilon:>15g}" for epsilon in epsilons))
    for name, line in lines.items():
        cells = [interval(values) for values in line]
        shown = (f"{m:8.3f} ± {h:4.2f}" if np.isfinite(h) else f"{m:8.3f}       " for m, h in cells)
        print(f"{name:26}" + "".join(f"{cell:>15}" for cell in shown), flush=True)


def means(scores: dict[str, dict[str, list[Floats]]]) -> dict[str, list[float]]:
    return {
        f"{measure} {arm}": [float(values.mean()) for values in line]
        for arm, found in scores.items()
        for measure, line in found.items()
    }


def plot(results: dict[str, object], epsilons: Sequence[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = 3
    height = -(-len(results) // columns)
    figure, axes = pyplot.subplots(height, columns, figsize=(16, 4 * height), squeeze=False)
    for axis, (title, lines) in zip(axes.ravel(), results.items(), strict=False):
        assert isinstance(lines, dict)
        for name, line in lines.items():
            axis.plot(epsilons, line, marker=".", label=name)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("ε")
        axis.legend(fontsize=5)
    figure.tight_layout()
    figure.savefig(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
