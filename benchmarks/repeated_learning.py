"""Learning as the service does, again and again: what is private is worked out once.

Draws, noise, budgets and what is read off them are the service's own; only counts, scores and
entropies are kept between repetitions. A test holds that one seed gives ``learn``'s own metric.
"""

from __future__ import annotations

from accounting.privacy_loss import PrivacyLoss
from benchmarks.metric_evaluation import Truth
from mechanisms.distances.entropy_contexts import mean_su, target_entropies
from mechanisms.distances.learn import TargetMetric, metrics, needed_pairs
from mechanisms.distances.options import Context
from mechanisms.distances.plan import Pair, Plan
from mechanisms.distances.rules import Contexts, read_contexts
from mechanisms.distances.tables import PairTables, release_pairs
from mechanisms.model.executor import Inline
from mechanisms.model.randomness import Randomness
from mechanisms.model.sensitivity import Integers


class Repeated:
    """One plan over the attributes of ``truth``."""

    def __init__(self, truth: Truth, plan: Plan) -> None:
        self._truth, self._plan = truth, plan
        self._entropies: Integers | None = None
        if plan.baseline is None and plan.options.context is Context.MEAN_SU:
            self._entropies = target_entropies(truth.table.records, plan, Inline())

    def learn(self, loss: PrivacyLoss, randomness: Randomness) -> list[TargetMetric]:
        """One answer for ``loss``."""
        plan = self._plan
        for_contexts, for_tables = plan.shares(loss)
        if plan.baseline is not None:
            noisy = self._released(plan.baseline, for_tables, randomness)
            return metrics(plan, read_contexts(plan, noisy), noisy)
        contexts = self._contexts(for_contexts, randomness)
        noisy = self._released(needed_pairs(contexts), for_tables, randomness)
        return metrics(plan, contexts, noisy)

    def _contexts(self, loss: PrivacyLoss, randomness: Randomness) -> Contexts:
        plan = self._plan
        if self._entropies is not None:
            return mean_su(self._entropies, plan, loss, randomness, Inline())
        shares = zip(plan.targets, loss.split(len(plan.targets)), strict=True)
        return {target: self._truth.draw(plan, target, share, randomness)
                for target, share in shares}  # fmt: skip

    def _released(
        self, pairs: tuple[Pair, ...] | list[Pair], loss: PrivacyLoss, randomness: Randomness
    ) -> PairTables:
        counted = PairTables({pair: self._truth.tables.tables[pair] for pair in pairs})
        return release_pairs(counted, self._plan, loss, randomness, Inline())
