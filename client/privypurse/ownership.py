"""Calls of owners: register a dataset, send its records, grant allowances."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from privypurse.accounts import Account, Balance, Budgets, Dataset
from privypurse.amounts import Number, composition, decimal_text, limit
from privypurse.connection import Connection, part
from privypurse.progress import Progress
from privypurse.uploads.record_files import as_file
from privypurse.uploads.sources import PULL_TIMEOUT, Source
from privypurse.uploads.upload import send_file, until_ready


class Ownership:
    """Your own datasets; a part of ``PrivyPurse``."""

    _connection: Connection
    _show_progress: bool | None

    def register(self, description: Mapping[str, Any]) -> Dataset:
        """Register a public description; it and its cap are fixed with the first grant."""
        path = "/v1/datasets"
        body = self._connection.json("POST", path, json=description, repeatable=False)
        return Dataset.of(body)

    def replace_description(self, description: Mapping[str, Any]) -> Dataset:
        """Replace the description of the dataset that it names, before the first grant.

        Raises: AlreadyExists once an allowance was granted, while records are published, or if the
        nodes have names.
        """
        path = f"/v1/datasets/{part(str(description['name']))}"
        return Dataset.of(self._connection.json("PUT", path, json=description))

    def upload_nodes(self, name: str, file: Path | str) -> int:
        """Send the names of a graph's nodes, one per line. Returns their number."""
        path = f"/v1/datasets/{part(name)}/nodes"
        with self._progress(name) as progress:
            reply = send_file(self._connection, path, Path(file), "text/csv", progress)
        return int(reply["nodes"])

    def upload(
        self, name: str, records: Path | str | Any, *, media_type: str | None = None
    ) -> Dataset:
        """Send records and wait until they can be queried; a terminal displays a bar for both.

        ``records``: a data frame of pandas or polars, a table of Arrow, a graph of NetworkX, or the
        path of a file. The media type of a file follows from its name: ``.csv``, ``.parquet``,
        ``.graphml``, ``.json`` (node-link), each also as ``.gz``.
        Raises: InvalidRecords; RecordsRefused if the preparation rejects them after the upload;
        TypeError for other objects.
        """
        path = f"/v1/datasets/{part(name)}/records"
        with as_file(records) as file, self._progress(name) as progress:
            send_file(self._connection, path, file, media_type, progress)
            return until_ready(self._connection, name, progress)

    def sources(self) -> list[Source]:
        """The sources of records that the operator has opened to you, with their tables."""
        return [Source.of(item) for item in self._connection.json("GET", "/v1/sources")["items"]]

    def attach_source(self, name: str, source: str, table: str) -> None:
        """Set the source and the table from which the records of a dataset are pulled."""
        body = {"source": source, "table": table}
        self._connection.json("PUT", f"/v1/datasets/{part(name)}/source", json=body)

    def source_of(self, name: str) -> tuple[str, str]:
        """The source of a dataset, and its table. Raises: NotFound if it has none."""
        body = self._connection.json("GET", f"/v1/datasets/{part(name)}/source")
        return body["source"], body["table"]

    def detach_source(self, name: str) -> None:
        """Remove the source of a dataset; its records stay."""
        self._connection.send("DELETE", f"/v1/datasets/{part(name)}/source")

    def pull(self, name: str) -> Dataset:
        """Read the table of the dataset's source as an upload, and wait until it can be queried.

        Raises: InvalidRecords; RecordsRefused if the preparation rejects them.
        """
        path = f"/v1/datasets/{part(name)}/source/pull"
        with self._progress(name) as progress:
            self._connection.json("POST", path, repeatable=False, timeout=PULL_TIMEOUT)
            return until_ready(self._connection, name, progress)

    def withdraw(self, name: str) -> None:
        """End all queries of the records; the ledger and stored answers stay."""
        self._connection.send("DELETE", f"/v1/datasets/{part(name)}/records")

    def grant(
        self,
        name: str,
        analyst: str,
        *,
        epsilon: Number,
        delta: Number = 0,
        composition_delta: Number = 0,
        gaussian: bool = False,
        allow_large_delta: bool = False,
        until: datetime | Literal["as it is"] | None = "as it is",
        if_match: str | None = None,
    ) -> Account:
        """Set the allowance of one analyst on a dataset; it cannot be less than is spent.

        With ``composition_delta``, such as 10⁻⁶, charges also fit while their ρ adds up: the same
        promise pays for many more small queries. The cap needs one too (``promise_cap``).
        Above 10⁻⁴ it is refused without ``allow_large_delta``, because it is the share of the
        probability for which the promise may fail.
        ``gaussian`` allows Gaussian noise: from its first charge on, charges fit by ρ alone.
        ``until``: a moment with a time zone. From then on the allowance takes no new charge; None:
        it has no end.
        """
        path = f"/v1/datasets/{part(name)}/budgets/{part(analyst)}"
        headers = {} if if_match is None else {"If-Match": if_match}
        in_rho = composition(
            composition_delta, gaussian=gaussian, allow_large_delta=allow_large_delta
        )
        body = {**limit(epsilon, delta), **in_rho}
        if until != "as it is":
            body["until"] = None if until is None else until.isoformat()
        # A first attempt that succeeds changes the etag, so the service would refuse a repetition.
        repeatable = if_match is None
        return Account.of(
            self._connection.json("PUT", path, json=body, headers=headers, repeatable=repeatable)
        )

    def promise_cap(
        self,
        name: str,
        composition_delta: Number,
        *,
        gaussian: bool = False,
        allow_large_delta: bool = False,
    ) -> Balance:
        """Set the composition_delta of a dataset's cap, and whether it allows Gaussian noise.

        Its ε and δ never change. Above 10⁻⁴ it needs ``allow_large_delta``, as in ``grant``.
        """
        in_rho = composition(
            composition_delta, gaussian=gaussian, allow_large_delta=allow_large_delta
        )
        body = {"composition_delta": decimal_text(composition_delta), **in_rho}
        return Balance.of(self._connection.json("PUT", f"/v1/datasets/{part(name)}/cap", json=body))

    def budgets_of(self, name: str) -> Budgets:
        """All accounts of a dataset, their sum, and the cap on their sum."""
        return Budgets.of(self._connection.json("GET", f"/v1/datasets/{part(name)}/budgets"))

    def _progress(self, name: str) -> Progress:
        return Progress(name, show=self._show_progress)
