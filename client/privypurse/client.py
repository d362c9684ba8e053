"""``PrivyPurse``: one service, as the user of one key sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack

import httpx

from privypurse import kinds
from privypurse.accounts import Account, Dataset, Entry, Point, Standing, User, Verification
from privypurse.administration import Administration
from privypurse.amounts import Number, decimal_text
from privypurse.answers import Selected, TopK, Value
from privypurse.clusters import Clusters
from privypurse.connection import Connection, part
from privypurse.distances import Distances
from privypurse.kinds import Query, Utility
from privypurse.levels import Columns
from privypurse.ownership import Ownership
from privypurse.progress import Progress
from privypurse.queries import ask as ask_until_answered
from privypurse.quotes import Quote
from privypurse.trees import Trees

A = TypeVar("A")


class PrivyPurse(Ownership, Administration):
    """A service at ``url`` and the key of one of its users.

    One call gives one answer and one charge, whatever happens to the connection or the service in
    between. ``patience``: seconds that the service may be away or busy at a time. ``progress``:
    a bar while waiting; None shows it on a terminal only. Safe to share between threads.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        patience: float = 120.0,
        progress: bool | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, key, patience=patience, transport=transport)
        self._show_progress = progress

    # ---- what there is ------------------------------------------------------------------------

    def me(self) -> User:
        """The user of the key."""
        return User.of(self._connection.json("GET", "/v1/me"))

    def catalogue(self) -> Any:
        """Everything that may be asked, with parameters, defaults and sources."""
        return self._connection.json("GET", "/v1/catalogue")

    def datasets(self) -> list[Dataset]:
        """The datasets that the user may see, newest first."""
        return [Dataset.of(one) for one in self._connection.pages("/v1/datasets")]

    def dataset(self, name: str) -> Dataset:
        """The public description of one dataset."""
        return Dataset.of(self._connection.json("GET", f"/v1/datasets/{part(name)}"))

    def budgets(self) -> list[Account]:
        """The analyst's accounts, one a dataset."""
        return [Account.of(one) for one in self._connection.json("GET", "/v1/budgets")["items"]]

    def overall_budget(self) -> Standing | None:
        """The limit over all datasets together, if there is one."""
        found = self._connection.json("GET", "/v1/budgets").get("overall")
        return None if found is None else Standing.of(found)

    def history(self, dataset: str, by: Literal["day", "kind", "mechanism"] = "day") -> list[Point]:
        """The analyst's charges on one dataset; made for plots."""
        path = f"/v1/budgets/{part(dataset)}/history"
        items = self._connection.json("GET", path, params={"by": by})["items"]
        return [Point.of(one) for one in items]

    def ledger(self, dataset: str | None = None) -> Iterator[Entry]:
        """Every change of the accounts that the user may see, newest first, fetched on demand."""
        return map(Entry.of, self._connection.pages("/v1/ledger", dataset=dataset))

    def verify(self) -> Verification:
        """Have the service recompute the ledger, as far as the user may see it."""
        return Verification.of(self._connection.json("GET", "/v1/ledger/verification"))

    # ---- asking -------------------------------------------------------------------------------

    def quote(
        self,
        dataset: str,
        query: Query[Any],
        *,
        epsilon: Number | None = None,
        target: Mapping[str, float] | None = None,
    ) -> Quote:
        """What a query would cost and promise, for free; or the ε that reaches a ``target``."""
        body: dict[str, Any] = {"dataset": dataset, "query": query.body}
        if epsilon is not None:
            body["epsilon"] = decimal_text(epsilon)
        if target is not None:
            body["target"] = target
        return Quote.of(self._connection.json("POST", "/v1/quotes", json=body))

    def ask(
        self,
        dataset: str,
        query: Query[A],
        *,
        epsilon: Number,
        key: str | None = None,
        timeout: float | None = None,
    ) -> A:
        """The answer to one query, charged ``epsilon`` exactly and once.

        ``key``: an idempotency key of one's own, so that a script that is run again gets the same
        answer for free; otherwise each call is a new question. ``timeout``: seconds to wait for
        the answer, or None for as long as it takes.
        Raises: BudgetExhausted and every other Problem; Unreachable; Unanswered.
        """
        columns: Columns = self.dataset(dataset).columns if query.described else {}
        body = {"dataset": dataset, "epsilon": decimal_text(epsilon), "query": query.body}
        label = f"{query.body['kind']} on {dataset}"
        with Progress(label, show=self._show_progress) as progress:
            reply = ask_until_answered(
                self._connection, body, key=key, timeout=timeout, progress=progress
            )
        return query.read(reply, columns)

    def selection(
        self,
        dataset: str,
        utilities: Utility | Sequence[Utility],
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[kinds.SelectionOptions],
    ) -> Selected:
        """One candidate of high utility."""
        return self.ask(dataset, kinds.selection(utilities, **options), epsilon=epsilon, key=key)

    def top_k(
        self,
        dataset: str,
        k: int,
        utilities: Utility | Sequence[Utility],
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[kinds.TopKOptions],
    ) -> TopK:
        """The k candidates of highest utility, more or less."""
        return self.ask(dataset, kinds.top_k(k, utilities, **options), epsilon=epsilon, key=key)

    def tree(
        self,
        dataset: str,
        algorithm: Literal["id3", "evolutionary"] = "id3",
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[kinds.TreeOptions],
    ) -> Trees:
        """A decision tree, or several."""
        return self.ask(dataset, kinds.tree(algorithm, **options), epsilon=epsilon, key=key)

    def distance(
        self,
        dataset: str,
        target: str | None = None,
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[kinds.DistanceOptions],
    ) -> Distances:
        """Distances between the values of one attribute, or of all."""
        return self.ask(dataset, kinds.distance(target, **options), epsilon=epsilon, key=key)

    def clustering(
        self,
        dataset: str,
        clusters: int,
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[kinds.ClusteringOptions],
    ) -> Clusters:
        """Centres of the records."""
        return self.ask(dataset, kinds.clustering(clusters, **options), epsilon=epsilon, key=key)

    def statistic(
        self,
        dataset: str,
        name: kinds.StatisticName,
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[kinds.StatisticOptions],
    ) -> Value:
        """One number."""
        return self.ask(dataset, kinds.statistic(name, **options), epsilon=epsilon, key=key)

    def cancel(self, query_id: str) -> None:
        """Give the charge back if the records are still closed. Raises: TooLate."""
        self._connection.send("DELETE", f"/v1/queries/{part(query_id)}")

    def drawing(self, query_id: str, format: Literal["text", "dot", "svg"] = "svg") -> str:
        """The trees of an answered query as a drawing, for files and pages; free."""
        path = f"/v1/queries/{part(query_id)}"
        return self._connection.send("GET", path, params={"format": format}).text

    # ---- the connection -----------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the connection."""
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
        # Not the key: a notebook that is shared shows this.
        return f"PrivyPurse({self._connection.url!r})"
