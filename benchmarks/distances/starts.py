"""Adjusted Rand index of private clusters with the classes, beside k-means of scikit-learn.

Queries name nothing but the clusters, as many as classes, and one-hot codes. scikit-learn takes the
best of 20 starts on the same codes, with each of 20 seeds: on dermatology and soybean its answers
differ, and a single seed could be a lucky one. *one start* is the only one of this service; the
other rivals are published (``published_clusters``). Where a record belongs is an evaluation, never
a release.
"""

from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from app.queries.clustering.body import Clustering
from benchmarks.bench import Bar, Bench, Setting, rows_of
from benchmarks.data.tables import Table, read_table
from benchmarks.distances.metric_evaluation import Floats, adjusted_rand, crossed
from benchmarks.distances.published_clusters import hashed_grid, spread_lloyd
from benchmarks.result import Cell, Estimate, Result, mean
from benchmarks.selections.defaults import table_place
from benchmarks.simulation import randomness
from mechanisms.model.context import QueryContext
from mechanisms.model.executor import Inline

TABLES = ("mushroom", "adult", "dermatology", "soybean")
EPSILONS = ("0.1", "0.3", "1", "3", "10", "100000")
STARTS = SEEDS = 20
#: For each table, pairs of an ε and the least ratio of the adjusted Rand index of private clusters
#: to that of scikit-learn.
BARS = {
    "mushroom": (("100000", 0.95),),
    "adult": (("1", 0.95), ("100000", 0.95)),
    "dermatology": (("100000", 0.95),),
    "soybean": (("100000", 0.95),),
}

#: Published private methods of clustering to compare with, by name.
RIVALS = {"spread centres (Su 2017)": spread_lloyd, "hashed grid (Chang 2021)": hashed_grid}


def run(result: Result, setting: Setting, name: str) -> None:
    table, place = read_table(setting.data, name), table_place(setting.data, name)
    codes, classes = one_hot_codes(table), table.classes.astype(np.int64)
    count = len(np.unique(classes))
    labels = (k_means(codes, count, seed) for seed in setting.fewer(range(SEEDS)))
    plain = mean([adjusted_rand(crossed(one, classes)) for one in labels])
    result.measure(f"{name}: scikit-learn", plain[0], "", plain[1])
    ways = {
        "starts": Clustering(kind="clustering", clusters=count, encoding="one_hot"),
        "one start": Clustering(kind="clustering", clusters=count, encoding="one_hot", starts=1),
    }

    def index(centres: Floats) -> float:
        """The adjusted Rand index of the rows by their nearest centres."""
        return adjusted_rand(crossed(nearest(codes, centres), classes))

    levels = tuple(len(one.levels) for one in table.attributes)
    rng = np.random.default_rng(randomness().stream().words(1))
    rows: list[list[Cell]] = []
    for epsilon in setting.fewer(EPSILONS):
        loss = PrivacyLoss.parse(epsilon)
        context = QueryContext(place.records, place.dataset, loss, randomness(), Inline())
        indices: dict[str, list[float]] = {}
        for way, query in ways.items():
            indices[way] = [
                index(np.array(query.compute(context).answer["centres"]))
                for _ in range(setting.times(40))
            ]
        for way, rival in RIVALS.items():
            indices[way] = [
                index(rival(codes, levels, count, float(epsilon), rng))
                for _ in range(setting.times(10))
            ]
        for way, values in indices.items():
            result.estimate(f"{name}, ε = {epsilon}: {way}", values)
        shares = f"{name}, ε = {epsilon}: share of scikit-learn"
        result.measure(shares, *share(mean(indices["starts"]), plain))
        rows.append([epsilon, *map(mean, indices.values()), plain])
    result.table(
        f"adjusted Rand index on {name}", ("ε", *ways, *RIVALS, "scikit-learn, 20 starts"), rows
    )


def one_hot_codes(table: Table) -> Floats:
    """The codes of all rows, (rows, values)."""
    parts = [np.eye(len(one.levels))[table.records.codes[one.name]] for one in table.attributes]
    return np.concatenate(parts, axis=1)


def nearest(codes: Floats, centres: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The nearest centre of every row."""
    return ((centres**2).sum(axis=1) - 2 * codes @ centres.T).argmin(axis=1)


def share(one: Estimate, whole: Estimate) -> tuple[float, str, float]:
    """The ratio of two estimates, its unit, and half of its interval."""
    ratio = one[0] / whole[0]
    return ratio, "×", float(np.hypot(one[1], ratio * whole[1])) / whole[0]


def k_means(codes: Floats, count: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The clusters of scikit-learn, without privacy."""
    from sklearn.cluster import KMeans

    labels = KMeans(count, n_init=STARTS, random_state=seed).fit_predict(codes)
    return np.asarray(labels, np.int64)


def _bars(name: str) -> tuple[Bar, ...]:
    shares = tuple(Bar(f"{name}, ε = {e}: share of scikit-learn", least=s) for e, s in BARS[name])
    return (*shares, Bar("mushroom, ε = 1: starts", least=0.3)) if name == "mushroom" else shares


BENCHES = tuple(
    Bench(f"clustering.{name}", f"How good are private clusters of {name}, and from which ε on?",
          partial(run, name=name), 300.0, ("scikit-learn, 20 starts", "one start", *RIVALS),
          _bars(name), rows_of(name))
    for name in TABLES
)  # fmt: skip
