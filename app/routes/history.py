"""How an analyst's budget went: by day, by kind of query or by mechanism; made for plots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from fastapi import Query

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Limit
from app.contract.models import Listing, Reply
from app.contract.problems import problems
from app.contract.times import moment
from app.http.access import CurrentUser, allow
from app.http.dependencies import ServicesDep
from app.http.routing import router
from app.queries import QUERY_KINDS
from app.usecases.services import Services
from mechanisms.model.domains import NeighbouringRelation
from storage.errors import NotFound
from storage.queries.history import QueryRow

api = router(prefix="/v1", tags=["budgets"])

PAGE = 1000
By = Literal["day", "kind", "mechanism"]


class Point(Reply):
    """What was charged on one day (``YYYY-MM-DD``, UTC), for one kind of query or mechanism."""

    label: str
    queries: int
    charged: Limit


@api.get(
    "/budgets/{dataset}/history", dependencies=[allow("analyst")], responses=problems(NotFound)
)
def budget_history(
    dataset: str,
    analyst: CurrentUser,
    services: ServicesDep,
    by: Annotated[By, Query(description="What one point stands for.")] = "day",
) -> Listing[Point]:
    """The caller's charges on one dataset, latest day first or by name; released ones left out."""
    ledger = services.ledger
    stored = services.datasets.find(
        dataset, lambda row: ledger.account(row.id, analyst.id) is not None
    )
    if stored is None:
        raise NotFound
    counts: dict[str, int] = defaultdict(int)
    sums: dict[str, PrivacyLoss] = defaultdict(lambda: PrivacyLoss(0))
    for row in _charged(services, analyst.id, dataset):
        label = LABELS[by](row)
        counts[label] += 1
        sums[label] += row.charge
    labels = sorted(counts, reverse=by == "day")
    items = [Point(label=label, queries=counts[label], charged=sums[label]) for label in labels]
    return Listing(items=items, next=None)


def _charged(services: Services, analyst_id: int, dataset: str) -> Iterator[QueryRow]:
    cursor: str | None = None
    while True:
        page = services.queries.page(
            analyst_id=analyst_id, dataset=dataset, limit=PAGE, cursor=cursor
        )
        yield from (row for row in page.items if row.status != "cancelled")
        cursor = page.next
        if cursor is None:
            return


def _day(row: QueryRow) -> str:
    return moment(row.created_us).date().isoformat()


def _kind(row: QueryRow) -> str:
    return str(row.request["query"]["kind"])


def _mechanism(row: QueryRow) -> str:
    query = row.request["query"]
    return QUERY_KINDS[query["kind"]].how(query, NeighbouringRelation(row.neighbouring))


LABELS: dict[By, Callable[[QueryRow], str]] = {"day": _day, "kind": _kind, "mechanism": _mechanism}
