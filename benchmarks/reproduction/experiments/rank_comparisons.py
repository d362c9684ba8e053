"""The statistical tests of the papers, on what the other experiments found.

Mann–Whitney U with Benjamini and Hochberg: is ``local`` better than ``global``, run by run, on each
table and at each ε. Page: do the measures of distance learning rise with ε, tables as blocks.
Friedman and Nemenyi: how the ways to learn distances rank over tables, by their means over ε.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench import Bench, Setting
from benchmarks.reproduction.experiments.contexts import PAPER as DISTANCES
from benchmarks.reproduction.experiments.distances import CONTEXT_TABLES
from benchmarks.reproduction.experiments.influential_nodes import PAPER as DAMPENING
from benchmarks.reproduction.experiments.tree_search import C_EPSILONS
from benchmarks.reproduction.experiments.weighted_nodes import PAPER as MULTI
from benchmarks.reproduction.rank_tests import LEVEL, Ranks, greater, rising, written
from benchmarks.result import Result, Verdict
from benchmarks.trees.accuracy import TABLES

#: What a run name looks like, by way and ε.
Named = Callable[[str, str], str]


def trees(setting: Setting) -> Result:
    result = Result()
    for depth in (2, 5):

        def named(way: str, epsilon: str, depth: int = depth) -> str:
            return f"{depth} information_gain {way} {epsilon}"

        title = f"ID3, depth {depth}: shifted above global, accuracy"
        compared(result, setting, DAMPENING, "decision_trees", title, named, "shifted", "global")
    return result


def searches(setting: Setting) -> Result:
    result = Result()

    def named(way: str, epsilon: str) -> str:
        return f"{way} {epsilon}"

    compared(result, setting, MULTI, "tree_search", "search: local above global, fitness", named,
             "local", "global")  # fmt: skip
    compared(result, setting, MULTI, "tree_pareto", "Pareto search: global above local, C", named,
             "global", "local")  # fmt: skip
    return result


def compared(
    result: Result, setting: Setting, paper: str, of: str, title: str, named: Named, larger: str,
    smaller: str,
) -> None:  # fmt: skip
    runs = {table: setting.earlier[f"{of}.{table}"]["runs"] for table in TABLES}
    epsilons = shared_epsilons(runs, named, larger, of)
    places = [(table, epsilon) for table in TABLES for epsilon in epsilons]
    adjusted = greater([
        (runs[table][named(larger, epsilon)], runs[table][named(smaller, epsilon)])
        for table, epsilon in places
    ])  # fmt: skip
    p_values = dict(zip(places, adjusted, strict=True))
    result.table(
        f"{title}: adjusted p-values of Mann–Whitney U",
        ["table", *(f"ε = {epsilon}" for epsilon in epsilons)],
        [[table, *(written(p_values[table, epsilon]) for epsilon in epsilons)] for table in TABLES],
    )
    count = int((adjusted < LEVEL).sum())
    result.claim(
        paper, f"{title}: the difference is significant",
        f"at {count} of {len(places)} pairs of table and ε, at a level of {LEVEL}",
        Verdict.HOLDS if count == len(places) else Verdict.OTHERWISE if count else Verdict.OPEN,
        "" if count == len(places) else "these repetitions show none" if not count
        else "not at every ε: where both are near the best, or near "
        "chance, nothing is left to tell",
    )  # fmt: skip


def shared_epsilons(runs: dict[str, Any], named: Named, way: str, of: str) -> list[str]:
    if of == "tree_pareto":
        return [f"{epsilon:g}" for epsilon in C_EPSILONS]
    tried = ("0.01", "0.05", "0.1", "0.5", "1", "2")
    return [e for e in tried if all(named(way, e) in found for found in runs.values())]


def distances(setting: Setting) -> Result:
    result = Result()
    found = {table: setting.earlier[f"distances.{table}"] for table in CONTEXT_TABLES}
    for measure in ("adjusted F", "correlation"):
        tables = [table for table in CONTEXT_TABLES if measure in found[table]]
        ways = list(found[tables[0]][measure])
        trends = {way: rising([found[t][measure][way] for t in tables]) for way in ways}
        result.table(
            f"{measure}: does it rise with ε? Page's test over {len(tables)} tables",
            ["way", "p-value"],
            [[way, written(p)] for way, p in trends.items()],
        )
        up = sum(p < LEVEL for p in trends.values())
        result.claim(
            DISTANCES, f"{measure} rises with ε (Page's trend)", f"for {up} of {len(ways)} ways",
            Verdict.HOLDS if up == len(ways) else Verdict.OTHERWISE if up else Verdict.FAILS,
            "" if up == len(ways) else "not for "
            + ", ".join(w for w, p in trends.items() if p >= LEVEL)
            + ": noise drowns what it looks for",
        )  # fmt: skip
        ranks = Ranks.of([[np.mean(found[t][measure][way]) for way in ways] for t in tables])
        result.table(
            f"{measure}: mean ranks over {len(tables)} tables (Friedman p "
            f"{written(ranks.p_value)}, Nemenyi's critical difference {ranks.critical:.2f})",
            ["way", "mean rank"],
            [[way, f"{rank:.2f}"] for way, rank in zip(ways, ranks.means, strict=True)],
        )
        best = int(np.argmin(ranks.means))
        beaten = [w for w, r in zip(ways, ranks.means, strict=True)
                  if r - ranks.means[best] > ranks.critical]  # fmt: skip
        sure = ranks.p_value < LEVEL
        result.claim(
            DISTANCES, f"{measure}: the ways to learn differ (Friedman, then Nemenyi)",
            f"{ways[best]} ranks first, significantly before {', '.join(beaten) or 'none'}",
            Verdict.HOLDS if sure and beaten else Verdict.OTHERWISE if sure else Verdict.FAILS,
            "" if sure and beaten else "the few tables at hand tell no pair apart" if sure
            else "the few tables at hand do not tell them apart",
        )  # fmt: skip
    return result


def experiments() -> list[Bench]:
    def all_of(*kinds: str) -> tuple[str, ...]:
        return tuple(f"{kind}.{table}" for kind in kinds for table in TABLES)

    by_table = tuple(f"distances.{table}" for table in CONTEXT_TABLES)
    return [
        Bench("rank_comparisons.trees", "Statistical tests of private trees", trees, 2.0,
              paper=DAMPENING, needs=all_of("decision_trees")),
        Bench("rank_comparisons.searches", "Statistical tests of searches", searches, 2.0,
              paper=MULTI, needs=all_of("tree_search", "tree_pareto")),
        Bench("rank_comparisons.distances", "Statistical tests of distances", distances, 2.0,
              paper=DISTANCES, needs=by_table),
    ]  # fmt: skip
