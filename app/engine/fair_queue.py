"""Deficit round robin: analysts take turns, in which each may begin queries of one quantum.

Source: Shreedhar and Varghese, Efficient Fair Queuing using Deficit Round Robin, 1995.
"""

from collections import deque
from typing import Generic, Protocol, TypeVar


class Entry(Protocol):
    """A query that waits, of one analyst."""

    analyst: int

    @property
    def amount(self) -> float:
        """What its begin takes of the deficit of its analyst, in public seconds."""
        ...

    @property
    def is_cancelled(self) -> bool: ...


Waiting = TypeVar("Waiting", bound=Entry)


class FairQueue(Generic[Waiting]):
    """Waiting queries. Those of one analyst begin in the order of their arrival."""

    def __init__(self, quantum: float) -> None:
        self._quantum = quantum
        self._queues: dict[int, deque[Waiting]] = {}
        self._deficits: dict[int, float] = {}
        #: The analysts with waiting queries, in the order in which they are served. The present
        #: turn is that of the first one.
        self._turns: deque[int] = deque()
        #: The deficit of an analyst is the seconds of work that they may still use. True once the
        #: first analyst's deficit was raised by the quantum for the present turn, so that no turn
        #: adds it twice.
        self._began = False

    def add(self, entry: Waiting) -> None:
        if entry.analyst not in self._queues:
            self._queues[entry.analyst] = deque()
            self._deficits[entry.analyst] = 0.0
            self._turns.append(entry.analyst)
        self._queues[entry.analyst].append(entry)

    def analysts(self) -> int:
        """How many analysts wait."""
        return len(self._turns)

    def head(self) -> Waiting | None:
        """The query that begins next; None if none waits."""
        while self._turns:
            analyst = self._turns[0]
            queue = self._queues[analyst]
            while queue and queue[0].is_cancelled:
                queue.popleft()
            if not queue:
                self._leave()
                continue
            amount = queue[0].amount
            if not self._began and self._deficits[analyst] < amount:
                self._deficits[analyst] += self._quantum
            self._began = True
            if self._deficits[analyst] >= amount:
                return queue[0]
            self.skip()
        return None

    def take(self) -> None:
        """Remove the query that ``head`` has returned."""
        analyst = self._turns[0]
        entry = self._queues[analyst].popleft()
        self._deficits[analyst] -= entry.amount
        if not self._queues[analyst]:
            self._leave()

    def skip(self) -> None:
        """End the turn of the analyst; its deficit stays."""
        self._turns.rotate(-1)
        self._began = False

    def _leave(self) -> None:
        """The analyst waits for nothing any more, and loses the rest of its deficit."""
        analyst = self._turns.popleft()
        del self._queues[analyst], self._deficits[analyst]
        self._began = False
