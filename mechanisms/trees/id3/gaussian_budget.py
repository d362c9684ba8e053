"""The budget of a private tree in ρ, for a loss without a finite ε: Gaussian noise on its counts.

Every path spends the whole loss, to the last femto-ρ: each record count one of 9L + 16 shares, each
choice of a split eight, and a leaf all that remains, which is 16 shares at the full depth. These
are the shares of equal accuracy with ``Budget``. Let a split by the exponential mechanism have ε,
which is ε²/8 in ρ. A class count then has Laplace noise of ε and a record count of ε/4. Gaussian
noise of these deviations has ε²/4 and ε²/64.

Nodes of one depth contain disjoint records, and so do the classes of a leaf.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import GaussianNoise, largest_within
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.noise.rate import Rate, score_bits
from mechanisms.selection import Selector
from mechanisms.trees.id3.budget import COUNT, LEAF, most_nodes

#: The ρ of a path from the root to a leaf is divided into equal shares. These are the numbers of
#: shares for the choice of a split and for the class counts of a leaf at the full depth. The record
#: count of a node takes one share.
SPLIT, LEAVES = 8, 16


@dataclass(frozen=True)
class GaussianBudget:
    """Shares of ``loss``, which states ρ alone, on a path of at most ``splits`` splits.

    Raises: UnsupportedQuery when a share is out of the range of exact noise.
    """

    loss: PrivacyLoss
    splits: int
    selector: Selector

    def __post_init__(self) -> None:
        for depth in range(self.splits + 1):
            self.leaf_law(depth)
        if self.splits:
            self.count_law  # noqa: B018 - the property raises
            Rate.of(self.split_loss.epsilon_nano, score_bits(1))

    @property
    def _count(self) -> int:
        """The ρ of a record count, in femto-ρ: one share, rounded down."""
        return self._shares(1)

    @property
    def _split(self) -> int:
        """The ρ of the choice of a split, in femto-ρ: eight shares, rounded down once."""
        return self._shares(SPLIT)

    def _shares(self, number: int) -> int:
        return self.loss.rho_femto * number // ((1 + SPLIT) * self.splits + LEAVES)

    @property
    def count_law(self) -> Deviation:
        """The noise of the record count of a node that may be split."""
        return Deviation.of(self._count, 1)

    @property
    def split_loss(self) -> PrivacyLoss:
        """The largest ε at which the choice of a split has its shares of ρ."""
        nano = _largest(self.selector, self._split)
        if not nano:
            raise UnsupportedQuery("the loss is too small to be shared by so many levels")
        return PrivacyLoss(nano)

    def leaf_law(self, depth: int) -> Deviation:
        """The noise of the class counts of a leaf at this depth."""
        return Deviation.of(self._leaf(depth), 1)

    def _leaf(self, depth: int) -> int:
        """The rest of the ρ of a path, in femto-ρ."""
        counts = depth if depth == self.splits else depth + 1
        return self.loss.rho_femto - counts * self._count - depth * self._split

    def steps(self, selector: Selector, levels: Sequence[int], classes: int) -> tuple[Step, ...]:
        """The steps of ``Budget.steps``, in ρ; they add up to the loss exactly."""
        count, split = (PrivacyLoss(0, 0, femto, 1) for femto in (self._count, self._split))
        steps = []
        for depth in range(self.splits):
            nodes = most_nodes(levels, depth)
            noise = GaussianNoise(self.count_law.square, 1)
            what = f"depth {depth}: Gaussian noise: {COUNT}"
            steps.append(Step(what, count, nodes, "parallel", noise))
            what = f"depth {depth}: {selector.name} of the split of each node (disjoint records)"
            chosen = selector.rho_bound(self.split_loss, 1)
            steps.append(Step(what, split, nodes, "parallel", chosen))
        last = PrivacyLoss(0, 0, self._leaf(self.splits), 1)
        leaves = most_nodes(levels, self.splits) * classes
        noise = GaussianNoise(self.leaf_law(self.splits).square, 1)
        return (*steps, Step(f"Gaussian noise: {LEAF}", last, leaves, "parallel", noise))


@lru_cache(maxsize=1024)
def _largest(selector: Selector, rho_femto: int) -> int:
    """The largest ε, in nano-ε, with this ρ; cached, because it takes long to find."""

    def femto(nano: int) -> int:
        return selector.rho_bound(PrivacyLoss(nano), 1).femto()

    return largest_within(femto, rho_femto)
