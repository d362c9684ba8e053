"""Exports lists as CSV files, streamed in pieces so that long lists need little memory."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response, StreamingResponse

from app.dashboard.templating import HEADERS


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Response:
    """A CSV download of ``rows``, which are read only as the file is sent."""
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}.csv"'}
    lines = _lines(columns, rows)
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def _lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow(row)
        if buffer.tell() > 64_000:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()
