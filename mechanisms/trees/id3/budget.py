"""The budget of a private tree: 5L + 4 shares on every path, spent from the root down.

L = min(depth, number of attributes) is the most splits of a path. A node at depth k < L spends one
share on its noisy record count and, if it is split, four on the choice of the attribute. At depth L
no count is released, because public facts force leaves there. A leaf spends all that remains on its
path on its class counts, which is four shares at depth L, so every path spends the whole loss, to
the last nano. Nodes of one depth contain disjoint records, and so do the classes of a leaf: they
compose in parallel.

A record count only stops nodes. Trees are more accurate where it costs a quarter of a choice:
``docs/trees.md`` has the comparison.

Danger: a leaf that stops early takes all of ε that is left on its path. Its ρ grows like ε², so the
charge in ρ is that of the most expensive path, which mostly ends at the root, and not the sum of
the steps of the longest path. In accounts that count in ρ such a leaf takes what is left of ρ
instead (``in_rho``), so that all paths cost what the longest one costs.

Source: Local Dampening, PVLDB 14(4), 2021, Algorithm 2, without the count at forced leaves and with
a smaller part for the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from accounting.composition import Step
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import FEMTO, Pure, RhoBound, largest_pure, pure_femto
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.tree_shape import MAX_NODES
from mechanisms.noise.discrete_laplace import likely_error
from mechanisms.noise.rate import Rate, score_bits
from mechanisms.selection import Selector

#: The names of the releases of a tree in the itemised price of the query.
COUNT = "noisy record count of each node (disjoint records), for the stop rule"
LEAF = "noisy class counts of each leaf (disjoint records)"

#: The privacy loss of a path from the root to a leaf is divided into equal shares. This is the
#: number of shares for the choice of a split, and for the class counts of a leaf at the full depth.
#: The record count of a node takes one share.
SPLIT = 4


@dataclass(frozen=True)
class Budget:
    """Shares of ``loss`` on a path of at most ``splits`` splits.

    ``in_rho``: the selector of splits, if a leaf that stops early takes what is left of ρ.
    Raises: UnsupportedQuery when a share is less than 10⁻⁹ or out of the range of exact noise.
    """

    loss: PrivacyLoss
    splits: int
    in_rho: Selector | None = None

    def __post_init__(self) -> None:
        # The laws of noise are computed only for their errors: each refuses a loss whose parts are
        # out of the range of exact noise.
        for depth in range(self.splits + 1):
            self.leaf_law(depth)
        if self.splits:
            if not self.count_loss.epsilon_nano:
                raise UnsupportedQuery("the loss is too small to be shared by so many levels")
            self.count_law  # noqa: B018 - the property raises
            Rate.of(self.split_loss.epsilon_nano, score_bits(1))

    @property
    def count_loss(self) -> PrivacyLoss:
        """The loss of the record count of a node that may be split: one share, rounded down."""
        return self._shares(1)

    @property
    def split_loss(self) -> PrivacyLoss:
        """The loss of the choice of one split: four shares, rounded down once."""
        return self._shares(SPLIT)

    def _shares(self, number: int) -> PrivacyLoss:
        return PrivacyLoss(self.loss.epsilon_nano * number // shares_of_path(self.splits))

    @property
    def count_law(self) -> Rate:
        """The noise of the record count of a node that may be split."""
        return Rate.of_counts(self.count_loss.epsilon_nano)

    def leaf_law(self, depth: int) -> Rate:
        """The noise of the class counts of a leaf at this depth."""
        return Rate.of_counts(self.leaf(depth))

    def leaf(self, depth: int) -> int:
        """The loss of a leaf, in nano-epsilons: what is left on its path of ε, or of ρ too."""
        splits = self.splits
        counts = depth if depth == splits else depth + 1
        spent = counts * self.count_loss.epsilon_nano + depth * self.split_loss.epsilon_nano
        rest = self.loss.epsilon_nano - spent
        if self.in_rho is None or depth == splits:
            return rest
        count, split = (bound.femto() for bound in self._bounds(self.in_rho))
        last = pure_femto(self.leaf(splits))
        return min(rest, largest_pure((splits - counts) * count + (splits - depth) * split + last))

    def _bounds(self, selector: Selector) -> tuple[RhoBound, RhoBound]:
        """The ρ of a record count and of the choice of a split."""
        return Pure(self.count_loss.epsilon()), selector.rho_bound(self.split_loss, 1)

    def steps(self, selector: Selector, levels: Sequence[int], classes: int) -> tuple[Step, ...]:
        """One step per count and choice of a path, root first, and one for the leaves.

        ``levels`` are the level counts of all attributes.
        ``times`` is the largest possible number of nodes at a depth, by public facts. The ρ of the
        leaves is what the most expensive path spends beyond the other steps.
        """
        count, split = self._bounds(selector)
        chosen = f"{selector.name} of the split of each node (disjoint records)"
        each = ((COUNT, self.count_loss, count), (chosen, self.split_loss, split))
        steps = [
            Step(f"depth {depth}: {what}", loss, most_nodes(levels, depth), "parallel", bound)
            for depth in range(self.splits)
            for what, loss, bound in each
        ]
        last = PrivacyLoss(self.leaf(self.splits), self.loss.delta_atto)
        what = LEAF
        if self.splits:
            rest = "what is left of ρ" if self.in_rho is not None else "all that is left"
            what += f"; a leaf that stops early takes {rest} on its path"
        leaves = most_nodes(levels, self.splits) * classes
        return (*steps, Step(what, last, leaves, "parallel", LeafRest(self, count, split)))


@dataclass(frozen=True)
class LeafRest(RhoBound):
    """What the most expensive path spends in ρ beyond the other steps of the longest path."""

    budget: Budget
    count: RhoBound
    split: RhoBound

    def of_group(self, members: int) -> Fraction:
        """Whole femto-ρ, as a fraction of 1: each release of a path is rounded up by itself."""
        splits = self.budget.splits
        count, split = self.count.femto(members), self.split.femto(members)

        def path(depth: int) -> int:
            counts = depth if depth == splits else depth + 1
            leaf = Pure(Fraction(self.budget.leaf(depth), NANO)).femto(members)
            return counts * count + depth * split + leaf

        most = max(path(depth) for depth in range(splits + 1))
        return Fraction(most - splits * (count + split), FEMTO)


def shares_of_path(splits: int) -> int:
    """The shares of ε on a path of so many splits."""
    return (1 + SPLIT) * splits + SPLIT


def loss_for_shares(split_nano: int, splits: int) -> PrivacyLoss:
    """The least loss at which choices and the leaves of the full depth have so many nano-epsilons
    each."""
    return PrivacyLoss(-(-split_nano * shares_of_path(splits) // SPLIT))


def most_nodes(levels: Sequence[int], depth: int) -> int:
    """A bound on the nodes at ``depth``: the product of the largest level counts, or the limit on
    nodes."""
    nodes = 1
    for count in sorted(levels, reverse=True)[:depth]:
        nodes = min(nodes * count, MAX_NODES)
    return nodes


def count_error(epsilon_nano: int, confidence: float) -> int:
    """The least x with P(|noise| ≤ x) ≥ ``confidence`` for discrete Laplace of rate ε.

    A public bound on the error of a released count; for information only.
    """
    return likely_error(Rate.of_counts(epsilon_nano), confidence)


def share_for_count_error(error: float, confidence: float) -> int:
    """The least loss, in nano-epsilons, at which ``count_error`` is at most ``error`` > 0."""
    low, high = 1, NANO
    while count_error(high, confidence) > error:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if count_error(middle, confidence) > error:
            low = middle + 1
        else:
            high = middle
    return high
