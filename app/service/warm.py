"""Compile every kernel ahead of its first use: ``python -m app.service.warm``.

The compiled code is cached on disk, so a set-up step that runs this spares the first upload and
the first query some seconds each. A kernel is compiled once for every combination of types that
it meets, so small work goes the ways of production: a graph is prepared, and every utility,
sensitivity and selector of the catalogue is asked once.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from app.service.warm_distances import warm_distances
from app.service.warm_statistics import warm_statistics
from app.service.warm_tables import warm_relations, warm_tables
from app.service.warm_trees import warm_trees
from mechanisms.kernels.graph import compressed_rows, first_duplicate
from mechanisms.kernels.preparation import (
    preparation_work,
    prepare_graph,
    prepare_totals,
)
from mechanisms.kernels.windows import windowed_rows
from mechanisms.model.candidates import AllNodes, Candidates
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.executor import Inline
from mechanisms.model.records import GraphRecords, Records
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import Rate
from mechanisms.noise.rounded_laplace import rounded_laplace
from mechanisms.objectives import Objective, Pareto, RelativeObjective, Term, WeightedSum
from mechanisms.selection import SELECTORS
from mechanisms.selection.top_k import select_top
from mechanisms.utilities import UTILITIES


def warm() -> None:
    """Run every compiled kernel, on made-up records and as little as it takes."""
    graph = _graph()
    nodes = Dataset("warm", NeighbouringRelation.EDGE, GraphDomain(nodes=5, max_degree=4))
    asked: dict[str, tuple[Records, Dataset, Candidates]] = {"nodes": (graph, nodes, AllNodes())}
    asked.update(warm_tables())
    loss, randomness, executor = PrivacyLoss(10**9), SystemRandomness(), Inline()
    everything = product(UTILITIES.values(), Sensitivity, SELECTORS.values(), (1, 2))
    for utility, sensitivity, selector, k in everything:
        records, dataset, candidates = asked[utility.candidates]
        select_top(
            records,
            dataset,
            candidates,
            utility,
            sensitivity,
            selector,
            k,
            "one_shot",
            loss,
            randomness,
            executor,
        )
    for kind, (records, dataset, candidates) in asked.items():
        for objective in objectives_of(kind):
            for sensitivity in Sensitivity:
                select_top(
                    records,
                    dataset,
                    candidates,
                    objective,
                    sensitivity,
                    SELECTORS["permute_and_flip"],
                    2,
                    "peeled",
                    loss,
                    randomness,
                    executor,
                    isinstance(objective, RelativeObjective),
                )
    warm_trees(randomness, executor)
    counts = np.zeros(2, np.int64)
    discrete_laplace(counts, Rate.of_counts(10**9), randomness, executor)
    warm_distances()
    warm_statistics({NeighbouringRelation.EDGE: (graph, nodes), **warm_relations()})
    rounded_laplace(counts, Rate.of_scale(Fraction(3, 2)), randomness, executor)


def objectives_of(kind: str) -> list[Objective]:
    """A sum of all utilities of a kind of candidates, and Pareto scores by either way to count."""
    terms = [Term(utility) for utility in UTILITIES.values() if utility.candidates == kind]
    total = Term(WeightedSum(terms))
    return [WeightedSum(terms), Pareto([total, terms[0]]), Pareto([total, terms[0], total])]


def _graph() -> GraphRecords:
    # A fan: its hub has open pairs that share a neighbour, counted by two-paths and by a matrix.
    sources = np.array([0, 0, 0, 0, 1, 2, 3], np.int32)
    targets = np.array([1, 2, 3, 4, 2, 3, 4], np.int32)
    first_duplicate(sources, targets, 5)
    indptr, indices = compressed_rows(sources, targets, 5)
    windowed_rows(sources, targets, indptr, indices, 4)
    preparation_work(indptr, indices)
    columns = prepare_graph(indptr, indices, Inline())
    totals = prepare_totals(indptr, indices, columns["co_degree"], Inline())
    return GraphRecords(indptr, indices, columns, totals)


if __name__ == "__main__":
    warm()
