"""Reading a whole list, page by page, within a slot of the long reads."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

from app.contract.models import Listing
from storage.database.pages import Page

Item = TypeVar("Item")

#: The number of items per page when a whole list is read.
PAGE = 1000


def every_item(page: Callable[[int, str | None], Listing[Item] | Page[Item]]) -> Iterator[Item]:
    """Every item of ``page(limit, cursor)`` and of the pages after it."""
    cursor: str | None = None
    while True:
        listing = page(PAGE, cursor)
        yield from listing.items
        cursor = listing.next
        if cursor is None:
            return


def within(slot: AbstractContextManager[None], items: Iterator[Item]) -> Iterator[Item]:
    """``items``, with ``slot`` held from now until the last item, or until nobody reads on.

    Raises: the refusals of ``slot``, now and not at the first item: no reply has begun then.
    """

    def read() -> Iterator[Item]:
        with slot:
            yield from begun
            yield from items

    # The generator takes ``slot``, a slot of long reads, when it starts, and frees it when it is
    # closed. If a generator never started, closing it runs no clean-up. So it is started here, and
    # the slot cannot stay taken.
    begun: list[Item] = [None]  # type: ignore[list-item]
    reading = read()
    next(reading)
    return reading
