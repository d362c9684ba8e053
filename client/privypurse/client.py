"""``PrivyPurse``: one service, used with the key of one user."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import httpx

from privypurse.accounts import (
    Account,
    Balance,
    Dataset,
    Entry,
    Notice,
    Point,
    User,
    Verification,
)
from privypurse.administration import Administration
from privypurse.amounts import Number, loss
from privypurse.answers.answer import Answer
from privypurse.budget_requests import BudgetRequests
from privypurse.certificates import Certificates
from privypurse.connection import Connection, part
from privypurse.device_flow import Login
from privypurse.frames import Listing, Stream
from privypurse.history import PastQuery, stored_answer
from privypurse.kinds import KindCalls, Query
from privypurse.levels import Columns
from privypurse.ownership import Ownership
from privypurse.progress import Progress
from privypurse.queries import ask as ask_until_answered
from privypurse.quotes import Quote

A = TypeVar("A")


class PrivyPurse(KindCalls, Ownership, BudgetRequests, Certificates, Administration):
    """A service at ``url`` and the key of one of its users, or their ``Login`` on this machine.

    One call gives one answer and one charge, also if the connection is lost or the service is
    restarted during the call. ``patience``: seconds for which the service may be away or busy at a
    time. ``progress``: whether a bar is visible while waiting; None means on a terminal only.
    Threads may share one instance.
    """

    def __init__(
        self,
        url: str,
        key: str | Login,
        *,
        patience: float = 120.0,
        progress: bool | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, key, patience=patience, transport=transport)
        self._show_progress = progress

    # ---- reading ------------------------------------------------------------------------------

    def me(self) -> User:
        """The user of the key."""
        return User.of(self._connection.json("GET", "/v1/me"))

    def catalogue(self) -> Any:
        """All kinds of queries, with parameters, defaults and sources."""
        return self._connection.json("GET", "/v1/catalogue")

    def datasets(self) -> Listing[Dataset]:
        """The datasets that the user may see, newest first."""
        return Listing(Dataset.of(one) for one in self._connection.pages("/v1/datasets"))

    def dataset(self, name: str) -> Dataset:
        """The public description of one dataset."""
        return Dataset.of(self._connection.json("GET", f"/v1/datasets/{part(name)}"))

    def mock(self, name: str, rows: int = 100, format: Literal["csv", "parquet"] = "csv") -> bytes:
        """A file of made-up records, drawn from the public description alone; free.

        Write code against it before you spend: ``pandas.read_csv(io.BytesIO(purse.mock(name)))``.
        """
        path = f"/v1/datasets/{part(name)}/mock"
        parameters = {"rows": rows, "format": format}
        return self._connection.send("GET", path, params=parameters).content

    def budgets(self) -> Listing[Account]:
        """The analyst's accounts, one per dataset."""
        items = self._connection.json("GET", "/v1/budgets")["items"]
        return Listing(Account.of(one) for one in items)

    def overall_budget(self) -> Balance | None:
        """The balance over all datasets together; None if it has no limit."""
        overall = self._connection.json("GET", "/v1/budgets").get("overall")
        return None if overall is None else Balance.of(overall)

    def key_budget(self) -> Balance | None:
        """The balance of the key itself; None if it has no limit of its own."""
        balance = self._connection.json("GET", "/v1/budgets").get("key")
        return None if balance is None else Balance.of(balance)

    def notices(self) -> Listing[Notice]:
        """What concerns you now, newest first: low budgets, requests, new versions and others."""
        items = self._connection.json("GET", "/v1/notices")["items"]
        return Listing(Notice.of(one) for one in items)

    def history(
        self, dataset: str, by: Literal["day", "kind", "mechanism"] = "day"
    ) -> Listing[Point]:
        """The analyst's charges on one dataset, summed for plots."""
        path = f"/v1/budgets/{part(dataset)}/history"
        items = self._connection.json("GET", path, params={"by": by})["items"]
        return Listing(Point.of(one) for one in items)

    def ledger(self, dataset: str | None = None) -> Stream[Entry]:
        """All entries of the accounts that the user may see, newest first, fetched on demand."""
        return Stream(map(Entry.of, self._connection.pages("/v1/ledger", dataset=dataset)))

    def verify(self) -> Verification:
        """Let the service recompute the hash chains of the accounts that the user may see."""
        return Verification.of(self._connection.json("GET", "/v1/ledger/verification"))

    # ---- queries ------------------------------------------------------------------------------

    def quote(
        self,
        dataset: str,
        query: Query[Any],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        target: Mapping[str, float] | None = None,
    ) -> Quote:
        """The charge and the accuracy of a query, free; or the ε that reaches a ``target``."""
        body: dict[str, Any] = {"dataset": dataset, "query": query.body}
        if epsilon is not None or rho is not None:
            body.update(loss(epsilon, rho))
        if target is not None:
            body["target"] = target
        return Quote.of(self._connection.json("POST", "/v1/quotes", json=body))

    def ask(
        self,
        dataset: str,
        query: Query[A],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> A:
        """The answer to one query, charged ``epsilon`` or ``rho`` exactly and once.

        ``rho`` adds Gaussian noise, in accounts that allow it, to tables and to values of top-k.
        ``key``: your own idempotency key; the same call with the same key returns the same answer,
        free. Without one each call is a new query. ``timeout``: seconds to wait for the answer;
        None waits as long as the query takes.
        Raises: BudgetExhausted and every other Problem; Unreachable; Unanswered.
        """
        columns: Columns = self.dataset(dataset).columns if query.described else {}
        body = {"dataset": dataset, **loss(epsilon, rho), "query": query.body}
        label = f"{query.body['kind']} on {dataset}"
        with Progress(label, show=self._show_progress) as progress:
            reply = ask_until_answered(
                self._connection, body, key=key, timeout=timeout, progress=progress
            )
        return query.read(reply, columns)

    def queries(self, dataset: str | None = None) -> Stream[PastQuery]:
        """The queries that the user may see, newest first, fetched on demand."""
        return Stream(map(PastQuery.of, self._connection.pages("/v1/queries", dataset=dataset)))

    def answer(self, query_id: str, *, timeout: float | None = None) -> Answer:
        """The stored answer of an own query, as the call that paid for it returned it; free.

        It waits for a query that runs, at most ``timeout`` seconds. Raises: Unanswered; NoAnswer if
        the query failed or was cancelled; NotFound.
        """
        return stored_answer(self._connection, query_id, timeout)

    def cancel(self, query_id: str) -> None:
        """Cancel a query that has not begun; its charge is released. Raises: TooLate."""
        self._connection.send("DELETE", f"/v1/queries/{part(query_id)}")

    def drawing(self, query_id: str, format: Literal["text", "dot", "svg"] = "svg") -> str:
        """A drawing of the trees of an answered query; free."""
        path = f"/v1/queries/{part(query_id)}"
        return self._connection.send("GET", path, params={"format": format}).text

    # ---- the connection -----------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        # The ``repr`` omits the API key, because a shared notebook may contain it.
        return f"PrivyPurse({self._connection.url!r})"
