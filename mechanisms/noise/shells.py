"""Independent coins of very different odds, tossed in a few words instead of one word each.

Coin i shows heads when a uniform U_i falls below π_i, and π_i < 2^−j for its *shell* j. Then the
first j bits of U_i are zero, which has probability 2^−j. For 64 coins of one shell together the AND
of j random words has one bit for each coin, and after about seven words no bit is set. Only the
coins that remain compare further bits.

A shell may be any valid j: it changes the work, never the law.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.radix import ascending
from mechanisms.model.randomness import Words, WordSource
from mechanisms.noise.addition import Integers
from mechanisms.noise.coins import ONE, ZERO

#: Random coins are sorted by their probability of heads. Shell j holds coins for which it is below
#: 2^−j. This is the deepest shell; coins of even smaller probability belong to it as well, because
#: a deeper shell would save no random word.
DEEPEST = 255
_FULL = ~ZERO
GROUP = 64


class Groups(NamedTuple):
    """Coins in groups of at most 64 of one shell: ``coins`` sorted by shell, then by index."""

    coins: Integers
    start: Integers
    size: Integers
    shell: Integers
    #: The number of random words that suffices for most rounds of tosses. A group of coins needs
    #: about eight, or as many as the number of its shell if that is less.
    words: int

    @classmethod
    def of(cls, shells: Integers) -> Groups:
        """The groups of coins by their ``shells``, each in 0 … DEEPEST."""
        coins = ascending(shells, DEEPEST)
        sizes = np.bincount(shells, minlength=DEEPEST + 1)
        pieces = -(-sizes // GROUP)
        shell = np.repeat(np.arange(DEEPEST + 1, dtype=np.int64), pieces)
        first = np.cumsum(sizes) - sizes
        within = np.arange(shell.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        start = first[shell] + GROUP * within
        size = np.minimum(GROUP, first[shell] + sizes[shell] - start)
        return cls(coins, start, size, shell, int(np.minimum(shell, 8).sum()) + 64)


def survivors(groups: Groups, source: WordSource) -> Integers:
    """The coins whose first bits, as many as their shell, are all zero; one round."""
    alive = np.empty(groups.coins.size, dtype=np.int64)
    block = source.words(groups.words)
    group, count, at = 0, 0, 0
    while True:
        group, count, at = toss(groups.start, groups.size, groups.shell, group, alive, count, block)
        if group == groups.shell.size:
            return groups.coins[alive[:count]]
        # Danger: if the random words end in the middle of a group of coins, the group must start
        # again from its first word, on a longer block. With fresh words the draw would be biased.
        unread = block[at:]
        block = np.concatenate([unread, source.words(max(64, 2 * unread.size, DEEPEST))])


@compiled
def toss(
    start: Integers,
    size: Integers,
    shell: Integers,
    group: int,
    alive: Integers,
    count: int,
    words: Words,
) -> tuple[int, int, int]:
    """Toss the groups from ``group`` on until the words end; survivors go to alive[count:].

    Returns the next group, the number of survivors, and the first unread word.
    """
    at = 0
    while group < shell.size:
        remaining = _FULL if size[group] == GROUP else (ONE << np.uint64(size[group])) - ONE
        first = at
        for _ in range(shell[group]):
            if at == words.size:
                return group, count, first
            remaining &= words[at]
            at += 1
            if remaining == ZERO:
                break
        # A coin survives if all its first bits are zero. In most groups none does, so this test
        # saves the loop over the coins.
        if remaining != ZERO:
            for bit in range(size[group]):
                alive[count] = start[group] + bit
                count += (remaining >> np.uint64(bit)) & ONE == ONE
        group += 1
    return group, count, at
