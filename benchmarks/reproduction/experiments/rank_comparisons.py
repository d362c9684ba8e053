"""The statistical tests of the papers, on what the other experiments stored.

Mann–Whitney U with Benjamini and Hochberg: is ``local`` better than ``global``, run by run, on each
table and at each ε. Page: do the measures of distance learning rise with ε, tables as blocks.
Friedman and Nemenyi: how the ways to learn distances rank over tables, by their means over ε.
"""

import numpy as np

from benchmarks.bench import Bench, Setting
from benchmarks.reproduction.experiments.distances import CONTEXT_TABLES, MEASURES
from benchmarks.reproduction.experiments.tree_search import C_EPSILONS
from benchmarks.reproduction.papers import DAMPENING, DISTANCES, MULTI
from benchmarks.reproduction.rank_tests import LEVEL, Ranks, greater, rising, written
from benchmarks.result import FAILS, HOLDS, OPEN, OTHERWISE, Result
from benchmarks.trees.accuracy import DEPTHS, EPSILONS, TABLES


def trees(result: Result, setting: Setting) -> None:
    for depth in DEPTHS:
        title = f"ID3, depth {depth}: shifted above global, accuracy"
        shifted, whole = (f"{depth} information_gain {way}" for way in ("shifted", "global"))
        judge(result, setting, "decision_trees", title, shifted, whole)


def searches(result: Result, setting: Setting) -> None:
    judge(result, setting, "tree_search", "search: local above global, fitness", "local", "global")
    judge(result, setting, "tree_pareto", "Pareto search: global above local, C", "global", "local",
          C_EPSILONS)  # fmt: skip


def judge(
    result: Result,
    setting: Setting,
    experiment: str,
    title: str,
    larger: str,
    smaller: str,
    tried: tuple[float, ...] = EPSILONS,
) -> None:
    """Whether one way has larger values than another; a run is stored under its way and ε."""
    runs = {table: setting.earlier[f"{experiment}.{table}"]["runs"] for table in TABLES}
    epsilons = [f"{e:g}" for e in tried if all(f"{larger} {e:g}" in r for r in runs.values())]
    places = [(table, epsilon) for table in TABLES for epsilon in epsilons]
    adjusted = greater([(runs[t][f"{larger} {e}"], runs[t][f"{smaller} {e}"]) for t, e in places])
    p_values = dict(zip(places, adjusted, strict=True))
    result.table(
        f"{title}: adjusted p-values of Mann–Whitney U",
        ["table", *(f"ε = {epsilon}" for epsilon in epsilons)],
        [[table, *(written(p_values[table, epsilon]) for epsilon in epsilons)] for table in TABLES],
    )
    count = int((adjusted < LEVEL).sum())
    result.claim(
        f"{title}: the difference is significant",
        f"at {count} of {len(places)} pairs of table and ε, at a level of {LEVEL}",
        HOLDS if count == len(places) else OTHERWISE if count else FAILS if setting.full else OPEN,
        "not at every ε: where both are near the best, or near chance, nothing is left to tell"
        if count else f"{len(next(iter(runs.values()))[f'{larger} {epsilons[0]}'])} runs show none",
    )  # fmt: skip


def distances(result: Result, setting: Setting) -> None:
    stored = {table: setting.earlier[f"distances.{table}"] for table in CONTEXT_TABLES}
    for measure in MEASURES:
        tables = [each[measure] for each in stored.values() if measure in each]
        ways = list(tables[0])
        trends = {way: rising([table[way] for table in tables]) for way in ways}
        result.table(
            f"{measure}: does it rise with ε? Page's test over {len(tables)} tables",
            ["way", "p-value"],
            [[way, written(p)] for way, p in trends.items()],
        )
        flat = [way for way, p in trends.items() if p >= LEVEL]
        result.claim(
            f"{measure} rises with ε (Page's trend)",
            f"for {len(ways) - len(flat)} of {len(ways)} ways",
            HOLDS if not flat else OTHERWISE if len(flat) < len(ways) else FAILS,
            f"not for {', '.join(flat)}: noise drowns what it looks for",
        )
        ranks = Ranks.of([[np.mean(table[way]) for way in ways] for table in tables])
        result.table(
            f"{measure}: mean ranks over {len(tables)} tables (Friedman p "
            f"{written(ranks.p_value)}, Nemenyi's critical difference {ranks.critical:.2f})",
            ["way", "mean rank"],
            [[way, f"{rank:.2f}"] for way, rank in zip(ways, ranks.means, strict=True)],
        )
        best = int(np.argmin(ranks.means))
        beyond = ranks.means - ranks.means[best] > ranks.critical
        beaten = [way for way, worse in zip(ways, beyond, strict=True) if worse]
        sure = ranks.p_value < LEVEL
        result.claim(
            f"{measure}: the ways to learn differ (Friedman, then Nemenyi)",
            f"{ways[best]} ranks first, significantly before {', '.join(beaten) or 'none'}",
            (HOLDS if beaten else OTHERWISE) if sure else FAILS,
            "the few tables at hand tell no pair apart" if sure
            else "the few tables at hand do not tell them apart",
        )  # fmt: skip


def _over(tables: tuple[str, ...], *experiments: str) -> tuple[str, ...]:
    return tuple(f"{experiment}.{table}" for experiment in experiments for table in tables)


BENCHES = tuple(
    Bench(f"rank_comparisons.{name}", f"Statistical tests of {title}", run, 2.0,
          paper=paper, needs=needs)
    for name, title, run, paper, needs in (
        ("trees", "private trees", trees, DAMPENING, _over(TABLES, "decision_trees")),
        ("searches", "searches", searches, MULTI, _over(TABLES, "tree_search", "tree_pareto")),
        ("distances", "distances", distances, DISTANCES, _over(CONTEXT_TABLES, "distances")),
    )
)  # fmt: skip
