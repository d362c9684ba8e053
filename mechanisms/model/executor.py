"""Where kernels run: an argument of everything that is worth splitting.

``app`` builds the executor: threads (kernels hold no interpreter lock), and, for what is spread,
other machines. Parts are of equal cost and merged in order, so the result depends neither on how
many workers there are nor on where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

Part = TypeVar("Part")
Result = TypeVar("Result")

#: What a kernel that can be spread reads, by name; never changed as long as it lives.
Arrays = Mapping[str, NDArray[Any]]
#: What it finds in one part.
Found = tuple[NDArray[Any], ...]


class Executor(Protocol):
    @property
    def workers(self) -> int:
        """How many parts run at the same time here; a hint for how many parts to make."""
        ...

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        """``kernel`` of every part, in the order of the parts; the first error is raised."""
        ...

    def spread(
        self,
        kernel: Callable[[Arrays, Part], Found],
        arrays: Arrays,
        cut: Callable[[int], Sequence[Part]],
        *,
        work: int,
        done: Callable[[int], None] | None = None,
    ) -> list[Found]:
        """``kernel`` of every part, in the order of the parts, on this machine or on others.

        Args:
            kernel: a function of a module, which finds the same in the same part anywhere. It
                draws nothing: noise is drawn here, once, after the parts are merged.
            cut: the parts for so many workers; plain values.
            work: steps of about a nanosecond that all parts take together. Of a query, from
                public facts alone: where it runs shows in its time.
            done: told the number of each part that is done, one call at a time or on the thread
                that did it. What it raises stops the work.
        """
        ...


class InProcess:
    """Spreads over its own ``map``: the base of executors that run on this machine alone."""

    workers = 1

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        return [kernel(part) for part in parts]

    def spread(
        self,
        kernel: Callable[[Arrays, Part], Found],
        arrays: Arrays,
        cut: Callable[[int], Sequence[Part]],
        *,
        work: int,  # noqa: ARG002 - it is all done here
        done: Callable[[int], None] | None = None,
    ) -> list[Found]:
        def one(numbered: tuple[int, Part]) -> Found:
            number, part = numbered
            found = kernel(arrays, part)
            if done is not None:
                done(number)
            return found

        return self.map(one, list(enumerate(cut(self.workers))))


class Inline(InProcess):
    """Runs every part at once on the calling thread: for tests and small work."""
