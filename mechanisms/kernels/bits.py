"""The number of set bits of a word, for all kernels that count rows or points by bitmaps."""

from typing import Any

from numba import types
from numba.extending import intrinsic


def _count_bits(typing: Any, word: Any) -> Any:  # noqa: ARG001 - as Numba prescribes
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


#: The number of set bits of a uint64, as uint64. It is one instruction on processors that have it.
set_bits: Any = intrinsic(_count_bits)
