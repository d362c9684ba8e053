"""Every bench and every experiment of the papers, by the modules that hold them."""

from importlib import import_module

from benchmarks.bench import Bench

#: The modules of the project's own benches, and of the experiments that repeat papers, in the order
#: in which they are listed.
OWN = (
    *("service.http", "service.one_clock", "service.black_boxes"),
    *("service.deadlines", "service.load", "service.growth", "service.real_graphs"),
    *("ledger.pairs", "ledger.pure_accounts", "ledger.exactness", "ledger.crashes", "ledger.large"),
    "ledger.pages",
    *(
        "draws.times",
        "draws.noise",
        "draws.together",
        "draws.growth",
        "selections.pareto",
        "selections.walks",
        "selections.betweenness",
        "selections.joint",
        "selections.defaults",
        "selections.stages",
    ),
    *(
        "trees.accuracy",
        "trees.learners",
        "trees.front",
        "trees.ordered_splits",
        "trees.speed",
        "distances.speed",
        "distances.gaussian",
        "distances.dependency",
        "distances.starts",
        "statistics.cells",
        "statistics.clinical",
        "statistics.errors",
        "statistics.speed",
    ),
    *("records.out_of_core", "records.cluster"),
)
PAPERS = (
    *("influential_nodes", "private_sql", "decision_trees", "weighted_nodes", "pareto_nodes"),
    *("tree_search", "contexts", "distances", "context_effects", "object_distances", "clusters"),
    *("planted_contexts", "adult_contexts", "learning_times", "gowalla_counts", "worked_examples"),
    *("noise_orders", "rank_comparisons", "salaries"),
)
BENCHES: tuple[Bench, ...] = tuple(
    bench
    for module in (*OWN, *(f"reproduction.experiments.{name}" for name in PAPERS))
    for bench in import_module(f"benchmarks.{module}").BENCHES
)
