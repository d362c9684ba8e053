"""A vector takes its noise from one stream of words, for all blocks and parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.model.errors import NoiseOverflow
from mechanisms.model.executor import Inline
from mechanisms.noise.addition import (
    PARALLEL_FROM,
    Kernel,
    add_noise,
    add_noise_in_blocks,
    block_size,
    parts,
)
from mechanisms.noise.discrete_laplace import add_discrete_laplace
from mechanisms.noise.geometric import add_geometric
from mechanisms.noise.rate import Rate
from mechanisms.noise.rounded_laplace import add_rounded_laplace
from tests.support.randomness import GivenWords, SeededRandomness
from tests.unit.mechanisms.noise import twins
from tests.unit.mechanisms.noise.rates import RATES
from tests.unit.mechanisms.noise.test_coins import OVERFLOWING

KERNELS = {
    add_geometric: twins.geometric,
    add_discrete_laplace: twins.discrete_laplace,
    add_rounded_laplace: twins.rounded_laplace,
}
Part = TypeVar("Part")
Result = TypeVar("Result")


class Several(Inline):
    """Runs inline but asks for parts."""

    workers = 3

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        listed = list(parts)
        assert len(listed) == 3
        return [kernel(part) for part in reversed(listed)][::-1]


@pytest.mark.parametrize(("kernel", "twin"), KERNELS.items())
@settings(deadline=None)  # the first call compiles the kernel, so no call has a time limit
@given(
    size=st.integers(1, 200),
    rate=st.sampled_from((*RATES, Rate(5, 1), Rate(2, 3))),
    seed=st.integers(0, 2**32),
)
def test_blocks_of_any_size_are_one_stream(
    kernel: Kernel, twin: Callable[..., int], size: int, rate: Rate, seed: int
) -> None:
    """The draws are those of the plain twin, so that no division into blocks changes the law."""
    values = np.arange(-10, 10)
    noisy = values.copy()
    add_noise_in_blocks(kernel, noisy, rate, SeededRandomness(seed).stream(), size)
    words = iter(SeededRandomness(seed).stream().words(10_000).tolist())
    assert noisy.tolist() == [v + twin(rate.a, rate.b, words) for v in values.tolist()]


@pytest.mark.parametrize("kernel", KERNELS)
def test_overflow_is_a_refusal_of_its_own(kernel: Kernel) -> None:
    values = np.zeros(3, dtype=np.int64)
    with pytest.raises(NoiseOverflow):
        add_noise(kernel, values, Rate.of(1000, 30), GivenWords(OVERFLOWING), Inline())


def test_long_vectors_are_split_and_every_part_has_its_own_stream() -> None:
    count = PARALLEL_FROM + 1
    values = np.arange(count)
    rate = Rate.of(10**9, 6)
    noisy = add_noise(add_geometric, values, rate, SeededRandomness(5), Several())
    assert (values == np.arange(count)).all()
    randomness = SeededRandomness(5)
    for start, stop in parts(count, Several()):
        alone = values[start:stop].copy()
        source = randomness.stream()
        add_noise_in_blocks(add_geometric, alone, rate, source, block_size(alone.size))
        assert (noisy[start:stop] == alone).all()


def test_parts_cover_the_vector_and_short_vectors_have_one() -> None:
    assert parts(PARALLEL_FROM - 1, Several()) == [(0, PARALLEL_FROM - 1)]
    pieces = parts(10**6, Several())
    assert [start for start, _ in pieces] + [10**6] == [0] + [stop for _, stop in pieces]
    assert max(stop - start for start, stop in pieces) <= 10**6 // 3 + 1


def test_an_empty_vector_needs_no_noise() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert add_noise(add_geometric, nothing, RATES[0], SeededRandomness(0), Inline()).size == 0


def test_blocks_grow_with_the_vector_up_to_a_megabyte() -> None:
    assert (block_size(1), block_size(10**6)) == (76, 2**17)
