"""The answer of a query as a file for data frames: a pure function of the stored reply, free."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from app.engine.requests import written
from app.identity.callers import Caller
from app.queries import QUERY_KINDS
from app.queries.parts.columns import Columns, explained, one_type
from app.usecases import queries
from app.usecases.services import Services


@dataclass(frozen=True)
class FileForm:
    """A form of files: its media type, and the function that writes the stored reply."""

    media_type: str
    write: Callable[[Mapping[str, Any]], bytes]


async def answer_file(services: Services, caller: Caller, query_id: str, form: str) -> bytes:
    """The answer of the caller's own query in one of ``FORMS``.

    Raises: NotFound, StillRunning, NotAcceptable, as ``queries.released_reply``.
    """
    reply = await queries.released_reply(services, caller, query_id)
    return await run_in_threadpool(FORMS[form].write, json.loads(reply))


def columns_of(reply: Mapping[str, Any]) -> Columns:
    """The answer of a stored reply as columns, with question, interval in words, and price."""
    return explained(QUERY_KINDS[reply["query"]["kind"]].columns(reply["answer"]), reply)


def as_json(reply: Mapping[str, Any]) -> bytes:
    return written(reply["answer"]).encode()


def as_csv(reply: Mapping[str, Any]) -> bytes:
    """CSV with a header; an absent value is an empty cell, and a float has all its digits.

    A count beside floats stays a whole number, as in the answer.
    """
    columns, text = columns_of(reply), io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def as_arrow(reply: Mapping[str, Any]) -> bytes:
    """An Arrow file (Feather), uncompressed, so that every reader accepts it."""
    import pyarrow
    from pyarrow import ipc

    table, sink = _table(reply), pyarrow.BufferOutputStream()
    with ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


def as_parquet(reply: Mapping[str, Any]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    sink = pyarrow.BufferOutputStream()
    parquet.write_table(_table(reply), sink)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


def _table(reply: Mapping[str, Any]) -> Any:
    import pyarrow

    columns = columns_of(reply)
    return pyarrow.table({name: one_type(list(values)) for name, values in columns.items()})


#: The file forms of an answer, by the value of the parameter ``?format=``.
FORMS: dict[str, FileForm] = {
    "json": FileForm("application/json", as_json),
    "csv": FileForm("text/csv; charset=utf-8", as_csv),
    "arrow": FileForm("application/vnd.apache.arrow.file", as_arrow),
    "parquet": FileForm("application/vnd.apache.parquet", as_parquet),
}
