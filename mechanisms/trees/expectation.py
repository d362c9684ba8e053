"""How many trees a forest has by default, and which learner to expect the best, by public facts.

The rules were fitted to five tables (``benchmarks/trees/learners.py``), so they are expectations
and no promise. They read no record.
"""

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.statistics.tables import replaces
from mechanisms.trees.id3.budget import SPLIT, shares_of_path
from mechanisms.trees.id3.stop_rule import least_count
from mechanisms.trees.task import Task
from mechanisms.utilities.tables import row_bound

#: The default number of trees of a forest, and the one with fewer than ``_PER_TREES`` / ε records.
#: Fewer trees have more of ε each.
TREES, FEW_TREES = 4, 2
_PER_TREES = 150
#: ``id3`` is expected to be best only with this many times the records that it needs to split its
#: root by the attribute of most values.
_ROOTS = 2
#: ``id3`` also needs at least this number / (ε of one split) records, times the square of the
#: number of classes.
_PER_SPLIT = 16
#: If ``id3`` is not expected to be best, naive Bayes is with at least this number / (ε of one
#: count) records.
_PER_COUNT = 50


def default_trees(dataset: Dataset, loss: PrivacyLoss) -> int:
    """The number of trees of a forest whose request names none.

    Privacy: a function of the description and the loss.
    """
    # A loss that is named in ρ has no ε. Gaussian noise of several trees is small together.
    is_small = 0 < _nano(dataset, loss) * row_bound(dataset) < _PER_TREES * NANO
    return FEW_TREES if is_small else TREES


def _nano(dataset: Dataset, loss: PrivacyLoss) -> int:
    """The ε of one added or removed record, in whole 10⁻⁹: half of that of a replacement."""
    return loss.epsilon_nano // 2 if replaces(dataset) else loss.epsilon_nano


def expected_best(task: Task, dataset: Dataset, loss: PrivacyLoss, max_depth: int) -> str:
    """``id3``, ``forest`` or ``naive_bayes``, for a loss on the change of one record.

    Privacy: a function of the description, the request and the loss.
    """
    nano = _nano(dataset, loss)
    rows, attributes, classes = row_bound(dataset), len(task.attributes), len(task.labels)
    splits = min(max_depth, attributes)
    share, of_tree = nano * SPLIT // shares_of_path(splits), nano // default_trees(dataset, loss)
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
