"""How long selections of nodes take whose δ follows the records, beside those whose δ does not.

Weighted sums under ``local`` stand beside their slower member alone, and Pareto scores under
``shifted`` beside those under ``global``. The best by betweenness are drawn as a query without
options draws them. All are in seconds of a processor, on one thread.
"""

from collections.abc import Callable
from functools import partial

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.result import Result
from benchmarks.rounds import Rounds, processor
from benchmarks.selections.cases import BETWEENNESS, UTILITY, Case, case_of, objective_of
from mechanisms.model.candidates import AllNodes
from mechanisms.model.context import QueryContext
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.objectives import Objective
from mechanisms.selection import SELECTORS
from mechanisms.selection.top_k import select_set, select_top

LOSS = PrivacyLoss.parse("1")
#: Pairs of utilities that a query combines. The one that takes longer alone comes first.
PAIRS = ((UTILITY, "degree"), ("egocentric_density", UTILITY))
#: By k: the most seconds for the selection of the k best nodes by betweenness in the largest graph.
BEST = {10: 0.08, 100: 0.25}


def one(case: Case, objective: Objective, sensitivity: Sensitivity) -> Callable[[], object]:
    """A selection of one candidate."""
    selector = SELECTORS["permute_and_flip"]
    return partial(
        select_top, case.records, case.dataset, AllNodes(), objective, sensitivity, selector, 1,
        "peeled", LOSS, SystemRandomness(), Inline(),
    )  # fmt: skip


def run(result: Result, setting: Setting) -> None:
    case = case_of(setting.data, "github")
    for pair in PAIRS:
        members = dict.fromkeys(pair, "1")
        ways = {
            "sum, local": one(case, objective_of("weighted_sum", members), Sensitivity.LOCAL),
            "alone, local": one(case, objective_of("single", {pair[0]: None}), Sensitivity.LOCAL),
        }
        pareto = objective_of("pareto", dict.fromkeys(pair))
        for sensitivity in (Sensitivity.SHIFTED, Sensitivity.GLOBAL):
            ways[f"Pareto, {sensitivity}"] = one(case, pareto, sensitivity)
        timed = {name: processor(way) for name, way in ways.items()}
        rounds = Rounds.of("seconds of a processor", timed, setting.times(7))
        name = f"github, {' and '.join(pair)}"
        rounds.report(result, name)
        for slow, fast in (("sum, local", "alone, local"), ("Pareto, shifted", "Pareto, global")):
            result.measure(f"{name}: {slow} / {fast}", rounds.ratio(slow, fast), "×")
    best_of_the_largest(result, setting)


def best_of_the_largest(result: Result, setting: Setting) -> None:
    if setting.quick:
        return  # A quick run skips this graph, which takes half a minute to prepare.
    case = case_of(setting.data, "gowalla")
    context = QueryContext(case.records, case.dataset, LOSS, SystemRandomness(), Inline())
    ways = {
        f"top {k}, {sensitivity}": processor(
            partial(select_set, context, AllNodes(), BETWEENNESS, sensitivity, k)
        )
        for k in BEST
        for sensitivity in (Sensitivity.SHIFTED, Sensitivity.LOCAL)
    }
    rounds = Rounds.of("seconds of a processor", ways, setting.times(7))
    rounds.report(result, "gowalla, betweenness")
    for way in ways:
        result.measure(f"gowalla: {way}", rounds.median(way), "s")


BENCHES = (
    Bench(
        "walks",
        "How long do selections take whose sensitivity follows the records?",
        run,
        120.0,
        ("one utility alone", "Pareto scores under global", "each other, by sensitivity"),
        (
            Bar("github, *: sum, local / alone, local", most=2.0),
            Bar("github, *: Pareto, shifted / Pareto, global", most=4.0),
            *(Bar(f"gowalla: top {k}, *", most=most) for k, most in BEST.items()),
        ),
        edges_of("github", "gowalla"),
    ),
)
