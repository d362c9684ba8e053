"""Two published ways to cluster privately, as rivals: on the one-hot codes of all attributes.

Noise is NumPy's: these are for comparison alone, never for the service. Records are added or
removed. A record of m attributes moves one count by 1 and sums by m.
"""

import numpy as np

from benchmarks.distances.metric_evaluation import Floats

ITERATIONS = 5
#: How many random records are tried as spread centres (start centres that are far apart), for each
#: distance that they must keep.
TRIES = 200


def spread_lloyd(
    codes: Floats,
    levels: tuple[int, ...],
    clusters: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Floats:
    """Centres of five noisy Lloyd iterations from centres that are spread over the domain.

    Source: Su, Cao, Li, Bertino, Lyu 2017 (DPLloyd with its spread centres): possible records, as
    far apart as a search finds without looking at records.
    """
    centres = spread_centres(levels, clusters, rng)
    scale = (1 + len(levels)) * ITERATIONS / epsilon
    for _ in range(ITERATIONS):
        place = ((centres**2).sum(axis=1) - 2 * codes @ centres.T).argmin(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, place, codes)
        counts = np.bincount(place, minlength=clusters) + rng.laplace(0, scale, clusters)
        sums += rng.laplace(0, scale, sums.shape)
        centres = np.clip(sums / np.maximum(counts, 1)[:, None], 0, 1)
    return centres


def spread_centres(levels: tuple[int, ...], clusters: int, rng: np.random.Generator) -> Floats:
    """Codes of possible records that differ in as many attributes as a search can find."""
    for apart in range(len(levels), -1, -1):
        chosen: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        for _ in range(TRIES):
            one = rng.integers(0, levels)
            if all((one != other).sum() >= apart for other in chosen):
                chosen.append(one)
            if len(chosen) == clusters:
                return one_hot(np.array(chosen), levels)
    raise ValueError("more clusters than draws")


def one_hot(
    records: np.ndarray[tuple[int, int], np.dtype[np.int64]], levels: tuple[int, ...]
) -> Floats:
    """The codes (rows, values) of records (rows, attributes)."""
    parts = [np.eye(size)[records[:, place]] for place, size in enumerate(levels)]
    return np.concatenate(parts, axis=1)


def hashed_grid(
    codes: Floats,
    levels: tuple[int, ...],
    clusters: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Floats:
    """Centres of k-means over the noisy means of the cells of a random grid.

    Cells are the sides of random planes through the middle of the domain; as many planes as leave
    a cell twice the noise of its count on average.
    Source: Chang and Kamath 2021 (cells by hashing), with one level of cells and the k-means of
    scikit-learn on what was released, as in the hybrid of Su et al. 2017.
    """
    from sklearn.cluster import KMeans

    scale = (1 + len(levels)) / epsilon
    bits = int(np.clip(np.log2(max(len(codes) / (2 * scale), 1)), 0, 12))
    middle = np.concatenate([np.full(size, 1 / size) for size in levels])
    planes = rng.normal(size=(codes.shape[1], bits))
    cell = ((codes - middle) @ planes > 0) @ (1 << np.arange(bits))
    counts = np.bincount(cell, minlength=1 << bits) + rng.laplace(0, scale, 1 << bits)
    sums = np.zeros((1 << bits, codes.shape[1]))
    np.add.at(sums, cell, codes)
    sums += rng.laplace(0, scale, sums.shape)
    full = counts > scale
    if full.sum() < clusters:
        return spread_centres(levels, clusters, rng)
    means = np.clip(sums[full] / counts[full, None], 0, 1)
    learned = KMeans(clusters, n_init=5, random_state=1).fit(means, sample_weight=counts[full])
    return np.asarray(learned.cluster_centers_)
