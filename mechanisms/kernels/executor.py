"""Where kernels run: an argument of everything that is worth splitting.

``app`` builds the executor (a thread pool now; kernels hold no interpreter lock). Parts are of
equal cost and merged in order, so the result does not depend on how many workers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


class Executor(Protocol):
    @property
    def workers(self) -> int:
        """How many parts run at the same time; a hint for how many parts to make."""
        ...

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        """``kernel`` of every part, in the order of the parts; the first error is raised."""
        ...


class Inline:
    """Runs every part at once on the calling thread: for tests and small work."""

    workers = 1

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        return [kernel(part) for part in parts]
