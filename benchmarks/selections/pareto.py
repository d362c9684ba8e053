"""Pareto scores of the nodes of real graphs by degree and egocentric density: how fast.

The score of all candidates against a compiled count of all pairs; δ(t) of all candidates against
the score; then whole top-3 queries, scored once and anew before each draw. On one thread.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.result import Result
from benchmarks.rounds import Rounds, wall
from benchmarks.selections.cases import Case, case_of
from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.dominance import Integers, Places, dominators, interval_dominators
from mechanisms.model.candidates import AllNodes
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.objectives import Pareto, Term
from mechanisms.selection import SELECTORS
from mechanisms.selection.top_k import select_top
from mechanisms.utilities import UTILITIES

#: The only graph on which all pairs of nodes are counted. Larger ones would take minutes.
COUNTED = "github"
MEMBERS = [UTILITIES["degree"], UTILITIES["egocentric_density"]]
#: By graph: the most seconds for a top-3 query that scores all remaining nodes anew before each
#: draw.
SECONDS = {"github": 0.5, "dblp": 6.0}


def run(result: Result, setting: Setting) -> None:
    for name in SECONDS:
        case = case_of(setting.data, name, bounded=False)
        values, lower, upper = coordinates(case)
        edges = [int(row) for row in np.abs(np.concatenate([lower, upper], axis=1)).max(axis=1)]
        ways = {
            "score of all": wall(partial(dominators, values, edges, Inline())),
            "δ(t) of all": wall(partial(interval_dominators, lower, upper, edges, Inline())),
        }
        if name == COUNTED:
            if (all_pairs(values) != dominators(values, edges, Inline())).any():
                raise AssertionError("the score differs from the count of all pairs")
            ways["all pairs"] = wall(partial(all_pairs, values))
        rounds = Rounds.of("seconds", ways, setting.times(7))
        rounds.report(result, f"{name}, {values.shape[1]:,} candidates")
        result.measure(f"{name}: δ(t) / score", rounds.ratio("δ(t) of all", "score of all"), "×")
        if name == COUNTED:
            ratio = rounds.ratio("all pairs", "score of all")
            result.measure(f"{name}: all pairs / score", ratio, "×")
        ways = {"once": wall(query(case, False)), "anew": wall(query(case, True))}
        rounds = Rounds.of("seconds", ways, 3).report(result, f"{name}, top 3")
        result.measure(f"{name}: top 3, scored anew", rounds.median("anew"), "s")


def query(case: Case, rescore: bool) -> Callable[[], object]:
    objective = Pareto([Term(member) for member in MEMBERS])
    selector, loss = SELECTORS["permute_and_flip"], PrivacyLoss.parse("20")
    return lambda: select_top(
        case.records, case.dataset, AllNodes(), objective, Sensitivity.LOCAL, selector, 3, "peeled",
        loss, SystemRandomness(), Inline(), rescore,
    )  # fmt: skip


def coordinates(case: Case) -> tuple[Integers, Integers, Integers]:
    """Utilities, and their boxes after two changes, (2, n) each."""
    everyone = np.arange(AllNodes().count(case.dataset))
    values, reach = [], []
    for member in MEMBERS:
        grid = member.grid(case.dataset, AllNodes(), Sensitivity.LOCAL)
        measured = member.measure(case.records, case.dataset, AllNodes(), Sensitivity.LOCAL, grid)
        values.append(measured.utilities)
        reach.append(measured.delta.at(0, everyone) + measured.delta.at(1, everyone))
    at, by = np.stack(values), np.stack(reach)
    return at, at - by, at + by


@compiled
def all_pairs(values: Integers) -> Places:
    """How many dominate each of the points (2, n): every pair once."""
    first, second = values[0], values[1]
    counts = np.empty(len(first), np.int32)
    for r in range(len(first)):
        a, b, count = first[r], second[r], 0
        for s in range(len(first)):
            count += (first[s] > a) & (second[s] > b)
        counts[r] = count
    return counts


BENCHES = (
    Bench(
        "pareto",
        "How fast are Pareto scores of all nodes, and their sensitivity?",
        run,
        60.0,
        ("a compiled count of all pairs",),
        (
            Bar("*: δ(t) / score", most=3),
            Bar(f"{COUNTED}: all pairs / score", least=5),
            *(Bar(f"{name}: top 3, scored anew", most=most) for name, most in SECONDS.items()),
        ),
        edges_of(*SECONDS),
    ),
)
