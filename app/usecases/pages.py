"""Reading a whole list, page by page."""

from collections.abc import Callable, Iterator
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
