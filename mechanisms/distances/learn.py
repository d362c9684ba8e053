"""Learns a metric from contexts and noisy tables. Read this file of the room first."""

from dataclasses import dataclass
from functools import cached_property

from mechanisms.distances.contexts import draw_contexts
from mechanisms.distances.metric import Floats, distance_matrix, embedding
from mechanisms.distances.plan import Pair, Plan
from mechanisms.distances.rules import Contexts, read_contexts
from mechanisms.distances.tables import PairTables, count_pairs, release_pairs
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Attribute


@dataclass(frozen=True)
class TargetMetric:
    """The released distances between the values of one attribute: public from here on."""

    attribute: Attribute
    context: tuple[Attribute, ...]
    points: Floats

    @cached_property
    def matrix(self) -> Floats:
        return distance_matrix(self.points)


def learn(context: QueryContext, plan: Plan) -> list[TargetMetric]:
    """The distances of every target of the plan, in order.

    Contexts come first. Then every pair of attributes that they need is released once, even if
    several contexts share it. The baseline releases its pairs and derives contexts from them.

    Privacy: ``context.loss`` under the dataset's relation, spent as ``plan.steps`` lists.
    Source: Battaglia, Celano, Pensa 2021, Algorithms 1–5 with their errata; sharing of pairs and
        dampened contexts are new here.
    """
    private, executor = context.table, context.executor
    for_contexts, for_tables = plan.shares(context.loss)
    if plan.baseline is not None:
        counted = count_pairs(private, plan, plan.baseline, executor)
        noisy = release_pairs(counted, plan, for_tables, context.randomness, executor)
        return metrics(plan, read_contexts(plan, noisy), noisy)
    contexts = draw_contexts(context.at(for_contexts), plan)
    counted = count_pairs(private, plan, needed_pairs(contexts), executor)
    noisy = release_pairs(counted, plan, for_tables, context.randomness, executor)
    return metrics(plan, contexts, noisy)


def needed_pairs(contexts: Contexts) -> list[Pair]:
    """The pairs i < j of a target and an attribute of its context, each once."""
    return sorted({(min(x, y), max(x, y)) for y, context in contexts.items() for x in context})


def metrics(plan: Plan, contexts: Contexts, tables: PairTables) -> list[TargetMetric]:
    """The metric that follows from contexts and noisy tables."""
    return [
        TargetMetric(
            plan.attributes[target],
            tuple(plan.attributes[x] for x in context),
            embedding([tables.of(x, target) for x in context]),
        )
        for target, context in contexts.items()
    ]
