"""The public split of a selection in stages: how much of ε goes to which shortlist.

Two extremes need no second stage. A shortlist of exactly k is the answer of the scores that pay at
a small ε. A shortlist of all candidates costs nothing, and the scores that keep the order of the
utilities select out of all. Between them lies a shortlist of a few more than k. The rule reads what
``auto`` reads: never a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.selection.automatic import few_tosses

#: The part of ε that draws a shortlist, from which the rest of ε selects k candidates. A small part
#: suffices, because the shortlist may hold a few candidates more than k.
SHORTLIST_SHARE = Fraction(1, 10)


@dataclass(frozen=True)
class Split:
    """From this ε on, a shortlist holds this many more than k; None stands for no shortlist."""

    #: A split divides a selection into the draw of a shortlist and a final draw from it. It applies
    #: if ε is at least a fixed ε and at least an ε per selected candidate, in units of 10⁻⁹.
    from_nano: int
    from_nano_each: int
    #: The shortlist holds the k candidates to select and this share of k in addition, but at least
    #: one candidate more. None stands for no shortlist.
    beyond: Fraction | None
    reason: str

    def starts_at(self, k: int) -> int:
        return max(self.from_nano, self.from_nano_each * k)

    def shortlist(self, k: int) -> int | None:
        """The candidates on the shortlist of a selection of k."""
        if self.beyond is None:
            return None
        return k + max(1, ceil(k * self.beyond))


#: The utilities for which ``auto`` selects two or more candidates in two stages: a shortlist, then
#: the candidates. A shortlist is drawn by scores that are accurate at a small ε but do not keep the
#: order of the utilities. Below the first ε listed, and for all other utilities, there is one
#: stage.
SPLITS: dict[str, tuple[Split, ...]] = {
    "egocentric_betweenness": (
        Split(
            20 * NANO,
            0,
            Fraction(0),
            "This ε tells which of one node too many has the least betweenness.",
        ),
        Split(
            20 * NANO,
            15 * NANO,
            Fraction(1, 4),
            "This ε orders a shortlist of a quarter more nodes by betweenness.",
        ),
        Split(0, 200 * NANO, None, "This ε orders all nodes by betweenness, without a shortlist."),
    )
}


def split_at(ranking: str, k: int, loss: PrivacyLoss, count: int) -> Split | None:
    """The split of a selection of k out of ``count``; None where ``auto`` serves it in one stage.

    A shortlist is a set. Where too many coins were to be tossed for it, one stage remains.
    """
    chosen = None
    for split in _splits(ranking, k):
        if split.starts_at(k) <= loss.epsilon_nano:
            chosen = split
    size = None if chosen is None else chosen.shortlist(k)
    if size is not None and (size >= count or not few_tosses(count, size)):
        return None
    return chosen


def split_starts(ranking: str, k: int) -> list[int]:
    """The ε in nano from each of which on a selection in stages is split in another way."""
    return [split.starts_at(k) for split in _splits(ranking, k)]


def _splits(ranking: str, k: int) -> tuple[Split, ...]:
    """The splits of a ranking in ascending order of their ε."""
    return () if k == 1 else SPLITS.get(ranking, ())
