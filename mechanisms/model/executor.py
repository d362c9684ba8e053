"""Where kernels run; an argument of every computation that is worth splitting.

``app`` builds the executor: threads (kernels release the interpreter lock) and, for ``spread``,
other machines. Parts cost the same and are merged in order. So the result does not depend on the
number of workers or on where they run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

Part = TypeVar("Part")
Result = TypeVar("Result")

#: The arrays that the function run by ``Executor.spread`` reads, by name. They never change while
#: it runs.
Arrays = Mapping[str, NDArray[Any]]
#: The result of the function run by ``Executor.spread`` on one part of the work.
PartResult = tuple[NDArray[Any], ...]


class ExecutorFailed(RuntimeError):
    """The work was not done for a reason outside of it, such as a lost machine."""


class Executor:
    """Runs parts one after another; the base of executors that run parts concurrently."""

    #: The number of parts of the work that run concurrently on this machine. Callers cut their work
    #: into parts by it.
    workers = 1

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        """``kernel`` of every part, in the order of the parts. Raises the first error."""
        return [kernel(part) for part in parts]

    def spread(
        self,
        kernel: Callable[[Arrays, Part], PartResult],
        arrays: Arrays,
        cut: Callable[[int], Sequence[Part]],
        *,
        work: int,
        done: Callable[[int], None] | None = None,
    ) -> list[PartResult]:
        """``kernel`` of every part, in the order of the parts, on this machine or on others.

        Args:
            kernel: a module-level function whose result on a part is the same on every machine. It
                draws no noise: noise is drawn here, once, after the parts are merged.
            cut: returns the parts for a number of workers; parts are plain values.
            work: the steps of all parts together, of about a nanosecond each. For a query it must
                follow from public facts alone, because its duration shows where it runs.
            done: called with the number of each finished part, maybe by several threads at the same
                time. An exception from it stops the work.
        """

        def one(numbered: tuple[int, Part]) -> PartResult:
            number, part = numbered
            result = kernel(arrays, part)
            if done is not None:
                done(number)
            return result

        return self.map(one, list(enumerate(cut(self.workers))))


class Inline(Executor):
    """Runs every part immediately on the calling thread: for tests and small work."""
