"""Which learner to expect the best of ``id3``, a forest and naive Bayes, from public facts alone.

The rule was fitted to five tables (``benchmarks/trees/learners.py``), so it is an expectation and
no promise. It reads no record.
"""

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.statistics.tables import replaces
from mechanisms.trees.id3.budget import SPLIT, shares_of_path
from mechanisms.trees.id3.stop_rule import least_count
from mechanisms.trees.task import Task
from mechanisms.utilities.tables import row_bound

#: The number of trees of the forest that is compared with ``id3`` and naive Bayes.
TREES = 4
#: ``id3`` is expected to be best only with this many times the records that it needs to split its
#: root by the attribute of most values.
_ROOTS = 2
#: ``id3`` also needs at least this number / (ε of one split) records, times the square of the
#: number of classes.
_PER_SPLIT = 16
#: If ``id3`` is not expected to be best, naive Bayes is with at least this number / (ε of one
#: count) records.
_PER_COUNT = 50


def expected_best(task: Task, dataset: Dataset, loss: PrivacyLoss, max_depth: int) -> str:
    """``id3``, ``forest`` or ``naive_bayes``, for a loss on the change of one record.

    Privacy: a function of the description, the request and the loss.
    """
    nano = loss.epsilon_nano // 2 if replaces(dataset) else loss.epsilon_nano
    rows, attributes, classes = row_bound(dataset), len(task.attributes), len(task.labels)
    splits = min(max_depth, attributes)
    share, of_tree = nano * SPLIT // shares_of_path(splits), nano // TREES
    if not share or not of_tree or least_count(of_tree, min(task.levels), classes) > rows:
        # With so few records or so small an ε, no tree of a forest has a split. Id3 then grows no
        # split either: it is a single leaf, whose counts get the whole loss and so the least noise.
        return "id3"
    root = least_count(share, max(task.levels), classes)
    if rows >= _ROOTS * root and rows * share >= _PER_SPLIT * classes**2 * NANO:
        return "id3"
    if rows * nano >= _PER_COUNT * (attributes + 1) * NANO:
        return "naive_bayes"
    return "forest"
