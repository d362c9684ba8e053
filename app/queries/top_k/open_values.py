"""The most frequent values of an open attribute, whose values are private.

Danger: which values occur is private. Only values whose noisy count reaches the public threshold
can be selected, so an answer may have fewer than k.
"""

from dataclasses import dataclass
from typing import Any

from app.queries.parts.accuracy import CONFIDENCE, SCORE_TARGET, significant
from mechanisms.model.context import QueryContext
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.choice import Choice
from mechanisms.tables.open_groups import OpenPlan, largest_groups, release_groups

#: Open values are always selected by the same choice: noise is added to the count of each value.
CHOICE = Choice(Sensitivity.GLOBAL, "laplace")


@dataclass(frozen=True)
class OpenTop:
    """The k values of largest noisy counts, out of those that reach the threshold of ``plan``."""

    plan: OpenPlan
    k: int

    @property
    def error(self) -> int:
        """How far all noisy counts together are off at most, with probability ``CONFIDENCE``."""
        return self.plan.simultaneous_error(CONFIDENCE)

    def accuracy(self) -> dict[str, Any]:
        """Predicts the answer from public facts alone."""
        error = self.error
        return {
            "confidence": CONFIDENCE,
            SCORE_TARGET: significant(2.0 * error),
            "utility_below_best": significant(2.0 * error),
            "value_error": significant(float(error)),
            "threshold": self.plan.threshold,
            "explanation": (
                "Values are selected only if their noisy counts reach `threshold`, so there may be "
                "fewer than k. With this probability every noisy count is within `value_error` of "
                "the true one, and no value that is left out has more than `utility_below_best` "
                "records more than one that is selected."
            ),
        }

    def answer(self, context: QueryContext) -> dict[str, Any]:
        """The selected values in the order of their noisy counts. Privacy: that of ``plan``."""
        selected = largest_groups(release_groups(context, self.plan), self.k)
        error = self.error
        return {
            "selected": list(selected.labels[0]),
            "ordered": True,
            "values": {
                "value": selected.counts.tolist(),
                # A value is in the answer only if at least one record has it. So no interval of its
                # count begins below 1.
                "low": (selected.counts - error).clip(min=1).tolist(),
                "high": (selected.counts + error).tolist(),
            },
            "confidence": CONFIDENCE,
            "threshold": self.plan.threshold,
            "resolved": CHOICE.as_dict(),
            "order_preserving": True,
        }
