"""Every bench and every experiment of the papers; one line a file."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.distances import speed as distance_speed
from benchmarks.draws import audit, times
from benchmarks.ledger import crashes, exactness, large, pairs
from benchmarks.records import cluster, out_of_core
from benchmarks.reproduction.experiments import (
    adult_contexts,
    clusters,
    context_effects,
    contexts,
    decision_trees,
    distances,
    gowalla_counts,
    influential_nodes,
    learning_times,
    object_distances,
    pareto_nodes,
    private_sql,
    rank_comparisons,
    salaries,
    tree_search,
    weighted_nodes,
    worked_examples,
)
from benchmarks.selections import betweenness, pareto, recall
from benchmarks.service import http, one_clock, real_graphs
from benchmarks.statistics import errors
from benchmarks.statistics import speed as statistics_speed
from benchmarks.trees import accuracy
from benchmarks.trees import speed as tree_speed

BENCHES: tuple[Bench, ...] = (
    *http.BENCHES,
    *one_clock.BENCHES,
    *real_graphs.BENCHES,
    *pairs.BENCHES,
    *exactness.BENCHES,
    *crashes.BENCHES,
    *large.BENCHES,
    *times.BENCHES,
    *audit.BENCHES,
    *recall.BENCHES,
    *pareto.BENCHES,
    *betweenness.BENCHES,
    *accuracy.BENCHES,
    *tree_speed.BENCHES,
    *distance_speed.BENCHES,
    *errors.BENCHES,
    *statistics_speed.BENCHES,
    *out_of_core.BENCHES,
    *cluster.BENCHES,
    *influential_nodes.experiments(),
    *private_sql.experiments(),
    *decision_trees.experiments(),
    *weighted_nodes.experiments(),
    *pareto_nodes.experiments(),
    *tree_search.experiments(),
    *contexts.experiments(),
    *distances.experiments(),
    *context_effects.experiments(),
    *object_distances.experiments(),
    *clusters.experiments(),
    *adult_contexts.experiments(),
    *learning_times.experiments(),
    *gowalla_counts.experiments(),
    *worked_examples.experiments(),
    *rank_comparisons.experiments(),
    *salaries.experiments(),
)
