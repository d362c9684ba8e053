"""Adds noise to a vector: words in blocks, interrupted draws carried over, parts in parallel.

The work depends on the words and the public length of the vector, never on its values.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.errors import NoiseOverflow
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness, Words, WordSource
from mechanisms.noise.coins import OVERFLOW, mask

Integers = NDArray[np.int64]
#: A kernel is a compiled function (values, start, a, b, mask, words) → (next, position). It adds
#: noise to values[start:next] in place until the random words run out. ``a`` and ``b`` define the
#: law of the noise, as in ``Scale``. ``position`` is the first word of the unfinished draw; it is
#: OVERFLOW if the noise left its range.
Kernel = Callable[[Integers, int, np.uint64, np.uint64, np.uint64, Words], tuple[int, int]]


class Scale(Protocol):
    """Two public whole numbers that define the law of a kernel's noise, such as a ``Rate``."""

    @property
    def a(self) -> int: ...

    @property
    def b(self) -> int: ...


#: Noise for vectors of at least this length is drawn in parts, which the workers share.
PARALLEL_FROM = 1 << 15
_LARGEST_BLOCK = 1 << 17


def parts(count: int, executor: Executor) -> list[tuple[int, int]]:
    """Contiguous (start, stop) of nearly equal length, one per worker; public like ``count``."""
    if count < PARALLEL_FROM:
        return [(0, count)]
    pieces = executor.workers
    return list(pairwise(count * piece // pieces for piece in range(pieces + 1)))


def add_noise(
    kernel: Kernel, values: Integers, rate: Scale, randomness: Randomness, executor: Executor
) -> Integers:
    """``values`` with independent noise on each, shape (n,).

    Args:
        kernel: draws the noise; one of the kernels of this package.
        values: private whole numbers, |value| < 2⁶² by public bounds; not modified.
        rate: λ or σ of the noise; public, or hidden by the release instant.
        randomness: each part reads its own stream.

    Raises: NoiseOverflow with probability below n·e⁻¹⁰²⁴, whatever the values. In theory it costs δ
        < 10⁻⁴³⁰; clipping the noise or drawing again would cost the same.
    """
    noisy = values.astype(np.int64)  # ``astype`` copies, so the caller's array stays unchanged.

    def part(job: tuple[int, int, WordSource]) -> None:
        start, stop, source = job
        add_noise_in_blocks(kernel, noisy[start:stop], rate, source, block_size(stop - start))

    executor.map(part, [(*piece, randomness.stream()) for piece in parts(values.size, executor)])
    return noisy


def block_size(count: int) -> int:
    """The number of words to take at a time for ``count`` values."""
    return min(12 * count + 64, _LARGEST_BLOCK)


def add_noise_in_blocks(
    kernel: Kernel, values: Integers, rate: Scale, source: WordSource, size: int
) -> None:
    """Add noise to ``values`` in place, from blocks of ``size`` ≥ 1 words.

    If a block ends inside a draw, the next block begins with that draw's first word. If a block is
    too short for any draw, the size doubles. The words are read as one stream, so the law does not
    depend on ``size``.
    """
    a, b, keep = np.uint64(rate.a), np.uint64(rate.b), np.uint64(mask(rate.b))
    block = source.words(size)
    done, position = 0, 0
    while True:
        reached, position = kernel(values, done, a, b, keep, block)
        if position == OVERFLOW:
            raise NoiseOverflow("the noise left the range of exact arithmetic")
        if reached == values.size:
            return
        if reached == done:
            size *= 2
        unread = block[position:]
        block = np.concatenate([unread, source.words(size - unread.size)])
        done = reached
