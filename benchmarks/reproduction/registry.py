"""Every experiment; one line a file."""

from __future__ import annotations

from benchmarks.reproduction.experiment import Experiment
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

EXPERIMENTS: tuple[Experiment, ...] = (
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
