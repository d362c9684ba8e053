"""Search, order and pages of a list that is read whole, such as the accounts of one dataset."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from app.dashboard.visit import PAGE, Visit

T = TypeVar("T")


@dataclass(frozen=True)
class SearchPage(Generic[T]):
    """One page of the rows that a search found, and what the form of the search shows.

    ``orders``: the orders to choose from. ``total``: how many rows there are without the search.
    """

    items: list[T]
    search: str
    order: str
    orders: tuple[str, ...]
    number: int
    pages: int
    matches: int
    total: int

    def query(self, number: int) -> str:
        """The query string of another page of the same search."""
        return urlencode({"q": self.search, "order": self.order, "page": number})


def search_page(
    visit: Visit,
    rows: Iterable[T],
    name: Callable[[T], str],
    orders: Mapping[str, Callable[[T], Any]],
    size: int = PAGE,
) -> SearchPage[T]:
    """The page of ``rows`` that the query string of the visit names.

    ``name``: the text that a search looks in, whatever its case. ``orders``: a sort key for each
    order; the first is the default. Unknown orders and pages become the nearest there is.
    """
    sent = visit.request.query_params
    search, order = sent.get("q", "")[:100].strip(), sent.get("order", "")
    if order not in orders:
        order = next(iter(orders))
    everything = list(rows)
    matching = [row for row in everything if search.casefold() in name(row).casefold()]
    matching.sort(key=orders[order])
    pages = max(1, -(-len(matching) // size))
    sent_number = sent.get("page", "1")
    number = (
        min(int(sent_number[:6]), pages) if sent_number.isascii() and sent_number.isdigit() else 1
    )
    number = max(number, 1)
    items = matching[(number - 1) * size : number * size]
    return SearchPage(
        items, search, order, tuple(orders), number, pages, len(matching), len(everything)
    )
