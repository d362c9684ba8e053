"""Contexts by noisy entropies: the attributes that explain one target best.

Every entropy is noisy, including those in denominators; later steps read noisy values alone. The 2m
− 1 entropies move together by 2m − 1 sensitivities, which is attained.
"""

from __future__ import annotations

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.distances.entropies import entropy_steps
from mechanisms.distances.plan import Plan
from mechanisms.distances.rules import Contexts
from mechanisms.distances.tables import count_pairs
from mechanisms.distances.uncertainty import at_least_mean, projected, symmetric_uncertainty
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Integers
from mechanisms.noise.discrete_laplace import discrete_laplace


def target_entropies(records: TableRecords, plan: Plan, executor: Executor) -> Integers:
    """Private: H of the target, of every other attribute and of their pairs, (2m − 1,).

    In steps of ``plan.entropy_grid()``.
    """
    (target,) = plan.targets
    others = plan.others(target)
    pairs = [(min(x, target), max(x, target)) for x in others]
    private = count_pairs(records, plan, pairs, executor)
    tables = [private.of(x, target) for x in others]
    listed = [tables[0].sum(axis=0), *(table.sum(axis=1) for table in tables), *tables]
    return entropy_steps(listed, plan.rows, plan.entropy_grid())


def mean_su(
    exact: Integers, plan: Plan, loss: PrivacyLoss, randomness: Randomness, executor: Executor
) -> Contexts:
    """Attributes whose noisy symmetric uncertainty with the one target reaches the mean.

    Args:
        exact: the private result of ``target_entropies``.

    Privacy: ``loss`` under the dataset's relation.
    """
    (target,) = plan.targets
    others, levels = plan.others(target), plan.levels
    noisy = discrete_laplace(exact, plan.entropy_rate(loss), randomness, executor)
    h = np.ldexp(noisy.astype(np.float64), -plan.entropy_grid().bits).tolist()
    scores = {}
    for i, x in enumerate(others):
        three = projected(h[1 + i], h[0], h[1 + len(others) + i], levels[x], levels[target])
        scores[x] = symmetric_uncertainty(*three)
    return {target: at_least_mean(scores, plan.options.threshold)}
