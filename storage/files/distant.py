"""A node list that is elsewhere: how long it is, is known; its names are fetched when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from storage.files.labels import NodeLabels


class DistantLabels(Sequence[Any]):
    """The names of nodes, as ``storage.files.labels`` has them once they are here.

    Whatever needs a name may wait for a store and raises StoreFailed; then it is tried again by the
    next who needs one.
    """

    def __init__(self, length: int, fetch: Callable[[], NodeLabels]) -> None:
        self._length, self._fetch = length, fetch
        self._here: NodeLabels | None = None
        self._lock = Lock()

    @property
    def at_hand(self) -> bool:
        """Whether nobody has to wait for a name."""
        return self._here is not None

    def here(self) -> NodeLabels:
        """The list itself. Raises: StoreFailed."""
        if self._here is None:
            with self._lock:
                if self._here is None:
                    self._here = self._fetch()
        return self._here

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int | str: ...
    @overload
    def __getitem__(self, index: slice) -> list[int] | list[str]: ...
    def __getitem__(self, index: int | slice) -> int | str | list[int] | list[str]:
        return self.here()[index]
