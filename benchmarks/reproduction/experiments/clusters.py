"""Clusters and neighbours of rows by a private metric; private k-means on top of it.

Labels and neighbours of private rows are an evaluation and never a release. The rows that Ward's
clustering and neighbours look at are the same in every run. ε is that of the whole metric.
Synthetic tables are remade after their description: their authors' are not published. *one-hot*
stands for no metric, *DILCA_M* and *DILCA_RR* for metrics without noise.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bench, Setting, for_each, rows_of
from benchmarks.data.tables import SYNTHETIC, Table, read_table, synthetic
from benchmarks.distances.metric_evaluation import (
    EPSILONS,
    SIZE,
    Floats,
    Truth,
    adjusted_rand,
    crossed,
    mutual_information,
    neighbour_accuracy,
    one_hot_points,
    points,
    squares,
    ward,
)
from benchmarks.reproduction.experiments.distances import OWN, OWN_OPTIONS, Line, loss_of
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import Estimate, Result, mean
from benchmarks.simulation import randomness
from mechanisms.clustering.encoding import Encoding, learned, one_hot
from mechanisms.clustering.initial import DomainRecord
from mechanisms.clustering.lloyd import lloyd, partial_distances
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.kernels.assignment import cluster_counts
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Attribute
from mechanisms.model.executor import Inline
from mechanisms.noise.uniform import uniform

CLUSTER_TABLES = {"dermatology": 20.0, "soybean": 30.0, "mushroom": 25.0, "adult": 30.0}
#: The number of rows, drawn without replacement, for Ward's clustering and for nearest neighbours.
SAMPLE = 700
TIMES, RUNS, FEWER = 10, 30, 5
#: For each measure of ``K_MEANS``, the difference below which two results count as equal.
EQUALS = (0.1, 0.1, 0.02)
NOISES = (0.1, 0.2, 0.3)
MEASURES = {
    "Ward": "adjusted Rand index of Ward's clusters",
    "Ward, information": "normalized mutual information of Ward's clusters",
    "5-NN": "5-neighbour accuracy",
}
#: A private metric counts as near the one without privacy if its measure is at most so much lower.
NEAR = {"Ward": 0.1, "Ward, information": 0.1, "5-NN": 0.05}
#: How private k-means clusters are judged: by two indices of agreement with the classes of the
#: records, and by their variance.
INDEX, INFORMATION, VARIANCE = K_MEANS = (
    "adjusted Rand index",
    "normalized mutual information",
    "variance within clusters, as a share of the squared box",
)
CLUSTERING_LOSS, ITERATIONS, GRID_BITS = 2.0, 5, 16

WAYS = {
    "max_relevance": Options(Context.MAX_RELEVANCE, context_size=SIZE),
    "max_dependency": Options(Context.MAX_DEPENDENCY, context_size=SIZE),
    "baseline mean_su": Options(Context.BASELINE, rule=Rule.MEAN_SU),
}


class Sampled:
    """The rows of a table that Ward's clustering and neighbours look at, and their classes."""

    def __init__(self, truth: Truth) -> None:
        self.truth, table = truth, truth.table
        size = min(table.rows, SAMPLE)
        self.rows = np.sort(np.random.default_rng(1).choice(table.rows, size, replace=False))
        self.classes = table.classes[self.rows].astype(np.int64)
        self.count = len(np.unique(self.classes))
        self.learners = {
            way: truth.learner(options) for way, options in {**WAYS, OWN: OWN_OPTIONS}.items()
        }

    def scored(self, coordinates: Floats) -> tuple[float, ...]:
        """One value of each of ``MEASURES``: indices of as many Ward clusters as classes, and
        5-nearest-neighbour accuracy."""
        apart = squares(coordinates)
        pairs = crossed(ward(apart, self.count), self.classes)
        nearest = neighbour_accuracy(apart, self.classes)
        return adjusted_rand(pairs), mutual_information(pairs), nearest

    def private(self, way: str, epsilon: float, times: int) -> Floats:
        """The measures of so many private metrics, (measures, times)."""
        metrics = self.learners[way].answers(loss_of(way, epsilon), times)
        scores = [self.scored(points(self.truth.table, metric, self.rows)) for metric in metrics]
        return np.array(scores).T


def rows_and_classes(
    sampled: Sampled, epsilons: Sequence[float], times: int
) -> dict[str, dict[str, Line]]:
    """Each of ``MEASURES`` of each metric at each ε."""
    truth, table = sampled.truth, sampled.truth.table
    lines: dict[str, dict[str, Line]] = {measure: {} for measure in MEASURES}
    still = {
        "one-hot": one_hot_points(table, sampled.rows),
        "DILCA_M": points(table, truth.metric(truth.rule(Rule.MEAN_SU)), sampled.rows),
        "DILCA_RR": points(table, truth.metric(truth.rule(Rule.NOT_REDUNDANT)), sampled.rows),
    }
    for name, where in still.items():
        for measure, score in zip(MEASURES, sampled.scored(where), strict=True):
            lines[measure][name] = [np.array([score])] * len(epsilons)
    for way in sampled.learners:
        for epsilon in epsilons:
            values = sampled.private(way, epsilon, times)
            for measure, each in zip(MEASURES, values, strict=True):
                lines[measure].setdefault(way, []).append(each)
    return lines


def k_means(truth: Truth, epsilons: Sequence[float], runs: int) -> dict[str, Line]:
    """All of ``K_MEANS`` of all rows by their nearest private centres, (runs, measures): ε = 2 for
    clusters and the given one for the metric; one-hot codes get the sum; the third metric has no
    noise."""
    table = truth.table
    learner = truth.learner(WAYS["max_relevance"])
    codes = one_hot(truth.public.attributes, GRID_BITS)
    free = learned(truth.metric(truth.rule(Rule.MEAN_SU)), GRID_BITS)
    # This metric has no noise, so its results are the same at every ε and are computed once.
    without = np.array([clustered(table, free, CLUSTERING_LOSS) for _ in range(runs)])
    lines: dict[str, Line] = {"learned": [], "one-hot": []}
    for epsilon in epsilons:
        metrics = learner.answers(epsilon, runs)
        scores = [clustered(table, learned(m, GRID_BITS), CLUSTERING_LOSS) for m in metrics]
        lines["learned"].append(np.array(scores))
        summed = CLUSTERING_LOSS + epsilon
        lines["one-hot"].append(np.array([clustered(table, codes, summed) for _ in range(runs)]))
    return {**lines, "metric without noise": [without] * len(epsilons)}


def drawn_centres(attributes: Sequence[Attribute], clusters: int) -> list[DomainRecord]:
    """Different records, uniform over the public domain, as the paper's clusters begin."""
    source = randomness().stream()
    records: dict[DomainRecord, None] = {}
    while len(records) < clusters:
        records[tuple(uniform(len(a.levels), source) for a in attributes)] = None
    return list(records)


def clustered(table: Table, encoding: Encoding, epsilon: float) -> tuple[float, ...]:
    """One value of each of ``K_MEANS`` for one private clustering."""
    count = len(np.unique(table.classes))
    initial = drawn_centres(encoding.attributes, count)
    nano = int(Fraction(repr(epsilon)) * 10**9)
    points = np.array([encoding.point(record) for record in initial])
    loss = PrivacyLoss(nano)
    context = QueryContext(table.records, table.dataset, loss, randomness(), Inline())
    centres = lloyd(context, encoding, points, ITERATIONS, moves=2).points
    columns = [(table.records.codes[a.name], len(a.levels)) for a in encoding.attributes]
    # The class is counted in every cluster, but its distances are 0, so it does not decide which
    # centre is nearest.
    partial = partial_distances(encoding, centres)
    classes = int(table.classes.max()) + 1
    silent = np.concatenate([partial, np.zeros((classes, partial.shape[1]))])
    _, values = cluster_counts([*columns, (table.classes, classes)], silent)
    low, high = encoding.box
    within = float((values[:-classes] * partial).sum() / table.rows / ((high - low) ** 2).sum())
    return adjusted_rand(values[-classes:]), mutual_information(values[-classes:]), within


def real(result: Result, setting: Setting, name: str) -> None:
    measure(result, setting, read_table(setting.data, name), name, TIMES, RUNS)


def made_up(result: Result, setting: Setting, letter: str) -> None:
    for noise in setting.fewer(NOISES):
        title = f"synthetic {letter}, noise {noise:g}"
        measure(result, setting, synthetic(letter, noise), title, FEWER, FEWER)


def measure(
    result: Result, setting: Setting, table: Table, title: str, times: int, runs: int
) -> None:
    truth = Truth(table)
    epsilons, sampled = setting.fewer(EPSILONS), Sampled(truth)
    values = rows_and_classes(sampled, epsilons, setting.times(times))
    estimates: dict[str, dict[str, list[Estimate]]] = {
        kind: {
            way: [mean(v) if len(v) > 1 else (float(v[0]), 0.0) for v in line]
            for way, line in lines.items()
        }
        for kind, lines in values.items()
    }
    for kind, lines in estimates.items():
        result.plot(title, MEASURES[kind], epsilons, lines, "ε of the metric")
    repeated = k_means(truth, epsilons, setting.times(runs))
    for number, what in enumerate(K_MEANS):
        private = {
            way: [mean(runs_at[:, number]) for runs_at in line] for way, line in repeated.items()
        }
        result.plot(f"{title}, private k-means at ε = 2", what, epsilons, private,
                    "ε of the metric")  # fmt: skip
    for number, (kind, of_metrics) in enumerate(values.items()):
        last = {way: line[-1] for way, line in of_metrics.items()}

        def more(way: str, number: int = number) -> float:
            return float(sampled.private(way, epsilons[-1], 1)[number, 0])

        judge_near(result, setting, title, kind, last, more)
    learner, codes = (
        truth.learner(WAYS["max_relevance"]),
        one_hot(truth.public.attributes, GRID_BITS),
    )

    def draw() -> Floats:
        """How much larger each of ``K_MEANS`` is by the learned metric, in one more run."""
        (metric,) = learner.answers(epsilons[-1], 1)
        ours = clustered(table, learned(metric, GRID_BITS), CLUSTERING_LOSS)
        theirs = clustered(table, codes, CLUSTERING_LOSS + epsilons[-1])
        return np.subtract(ours, theirs)

    judge_k_means(result, setting, title, repeated["learned"][-1] - repeated["one-hot"][-1], draw)


def judge_k_means(
    result: Result, setting: Setting, title: str, gaps: Floats, draw: Callable[[], Floats]
) -> None:
    """Whether clusters on the learned metric are better, by how much larger each of ``K_MEANS``
    is, (runs, measures)."""
    for number, (what, better, equal) in enumerate(zip(K_MEANS, (1, 1, -1), EQUALS, strict=True)):
        column = (better * gaps[:, number]).tolist()

        def more(number: int = number, better: int = better) -> float:
            return better * float(draw()[number])

        setting.compare(
            result,
            f"{title}: private k-means on the learned metric is better than on one-hot codes, by "
            f"the {what}",
            lambda value, half: f"by {value:+.3f} ± {half:.3f} at the largest ε",
            column,
            more,
            equal,
            "with noise on empty clusters, two clusters touched by a replacement and public "
            "bounds, which the library used in the paper leaves out",
        )


def judge_near(
    result: Result,
    setting: Setting,
    title: str,
    kind: str,
    runs: Mapping[str, Floats],
    draw: Callable[[str], float],
) -> None:
    """From one of ``MEASURES`` of each metric at the largest ε; ``draw`` is one further value."""
    plain = float(runs["DILCA_M"][0])
    best = max(WAYS, key=lambda way: float(runs[way].mean()))
    setting.compare(
        result,
        f"{title}: {MEASURES[kind]} by the private metric comes near that without privacy",
        lambda gap, half: (
            f"{plain + gap:.3f} ± {half:.3f} at the largest ε, {plain:.3f} for DILCA_M"
        ),
        (runs[best] - plain).tolist(),
        lambda: draw(best) - plain,
        NEAR[kind],
        "ε is that of the whole metric, so every distance has much noise",
        no_less=True,
    )


BENCHES = for_each(
    "clusters", "Clusters of {} by a private metric", real, DISTANCES, CLUSTER_TABLES, rows_of
) + tuple(
    Bench(f"clusters.synthetic_{letter.lower()}", f"Clusters of synthetic tables {letter}",
          partial(made_up, letter=letter), 15.0, paper=DISTANCES)
    for letter in SYNTHETIC
)  # fmt: skip
