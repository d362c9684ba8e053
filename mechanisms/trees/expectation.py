"""Which learner to expect the best of ``id3``, a forest and naive Bayes, from public facts alone.

The rule was fitted to five tables (``benchmarks/trees/learners.py``), so it is an expectation and
no promise. It reads no record.
"""

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.trees.id3.stop_rule import least_count
from mechanisms.trees.task import Task
from mechanisms.utilities.tables import row_bound

#: ``id3`` needs so many times the records that split the root by the attribute of most levels.
_ROOTS = 2.5
#: It also needs so many records per unit of noise of the choice of one split.
_PER_SPLIT = 30
#: Naive Bayes needs so many records per unit of noise of one count.
_PER_COUNT = 15


def expected_best(task: Task, dataset: Dataset, loss: PrivacyLoss, max_depth: int) -> str:
    """``id3``, ``forest`` or ``naive_bayes``, for a loss on the change of one record.

    Privacy: a function of the description, the request and the loss.
    """
    rows, attributes = row_bound(dataset), len(task.attributes)
    splits = min(max_depth, attributes)
    share = loss.epsilon_nano // (2 * splits + 1)
    if share and splits:
        root = least_count(share, max(task.levels), len(task.labels))
        if rows >= _ROOTS * root and rows * share >= _PER_SPLIT * NANO:
            return "id3"
    if rows * loss.epsilon_nano >= _PER_COUNT * (attributes + 1) * NANO:
        return "naive_bayes"
    return "forest"
