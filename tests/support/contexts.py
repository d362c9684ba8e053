"""The context of a computation, with what a test does not vary left out."""

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.noise.keystream import SystemRandomness


def context(
    records: Records,
    dataset: Dataset,
    loss: PrivacyLoss = PrivacyLoss(0),
    randomness: Randomness | None = None,
    executor: Executor | None = None,
) -> QueryContext:
    return QueryContext(
        records, dataset, loss, randomness or SystemRandomness(), executor or Inline()
    )
