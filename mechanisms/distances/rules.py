"""Contexts from noisy tables of pairs: post-processing, at no loss.

Sources: DILCA_M and DILCA_RR in Ienco, Pensa, Meo, From Context to Distance, TKDD 2012 (the latter
    by FCBF, Yu and Liu 2003); for dependency Peng, Long, Ding, TPAMI 2005, section 2.4. They show
    that, adding one attribute at a time, the most dependent set is that of most relevance and least
    redundancy, which tables of pairs determine.
"""

from collections.abc import Callable

from mechanisms.distances.options import Rule
from mechanisms.distances.plan import Plan
from mechanisms.distances.tables import PairTables
from mechanisms.distances.uncertainty import at_least_mean, dependency, entropies, table_uncertainty

Contexts = dict[int, tuple[int, ...]]


def read_contexts(plan: Plan, noisy: PairTables) -> Contexts:
    """The context of every target by the plan's rule; never empty."""
    if plan.size == len(plan.attributes) - 1:
        return {target: plan.others(target) for target in plan.targets}
    rule = RULES[plan.options.baseline_rule]
    return {target: rule(plan, noisy, target) for target in plan.targets}


def mean_su(plan: Plan, noisy: PairTables, target: int) -> tuple[int, ...]:
    """Attributes whose symmetric uncertainty reaches ``threshold`` times the mean, or is best."""
    scores = {x: table_uncertainty(noisy.of(x, target)) for x in plan.others(target)}
    return at_least_mean(scores, plan.options.threshold)


def not_redundant(plan: Plan, noisy: PairTables, target: int) -> tuple[int, ...]:
    """Attributes in falling order of their symmetric uncertainty (SU) with the target.

    One is selected if its SU with the target exceeds that with every attribute selected before it.
    """
    scores = {x: table_uncertainty(noisy.of(x, target)) for x in plan.others(target)}
    selected: list[int] = []
    for x in sorted(scores, key=lambda x: (-scores[x], x)):
        if all(scores[x] > table_uncertainty(noisy.of(x, before)) for before in selected):
            selected.append(x)
    return tuple(selected)


def max_relevance(plan: Plan, noisy: PairTables, target: int) -> tuple[int, ...]:
    """The k attributes X of largest −H(target | X); the first one wins a tie."""
    scores = {x: dependency(noisy.of(x, target)) for x in plan.others(target)}
    return tuple(sorted(scores, key=lambda x: (-scores[x], x))[: plan.size])


def max_dependency(plan: Plan, noisy: PairTables, target: int) -> tuple[int, ...]:
    """k attributes; each next one has the most relevance minus mean redundancy with the others."""
    relevance = {x: _information(noisy, x, target) for x in plan.others(target)}
    redundancy = dict.fromkeys(relevance, 0.0)
    selected: list[int] = []
    while len(selected) < plan.size:
        count = max(len(selected), 1)
        last = max(
            (x for x in relevance if x not in selected),
            key=lambda x: (relevance[x] - redundancy[x] / count, -x),
        )
        selected.append(last)
        for x in relevance:
            if x not in selected:
                redundancy[x] += _information(noisy, x, last)
    return tuple(selected)


def _information(noisy: PairTables, x: int, y: int) -> float:
    h_x, h_y, h_xy = entropies(noisy.of(x, y))
    return h_x + h_y - h_xy


RULES: dict[Rule, Callable[[Plan, PairTables, int], tuple[int, ...]]] = {
    Rule.MEAN_SU: mean_su,
    Rule.NOT_REDUNDANT: not_redundant,
    Rule.MAX_RELEVANCE: max_relevance,
    Rule.MAX_DEPENDENCY: max_dependency,
}
