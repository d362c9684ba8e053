"""Formats of records, for the interactive documentation; tests upload every example."""

from typing import Any, Literal

from fastapi.openapi.models import Example

DESCRIPTION = """\
What the registration describes and nothing else: one record that does not fit refuses all.

`text/csv` (UTF-8, also with `Content-Encoding: gzip`) and Parquet have exactly these columns,
in any order; the first line of CSV names them:

| `kind` | columns | a row is |
|---|---|---|
| `graph` | `source`, `target` | an undirected edge between two described nodes, once |
| `table` | the `name` of every attribute | a level, a number or a date within bounds of each |
| `prefix` | `cutoff` | how many of `public_values` apply: one row, from 0 to their number |

A date is written as year, month and day: `2024-12-31`. A missing value is written as the
attribute's `missing`, in Parquet also as null.

Graphs also come as GraphML, or as node-link JSON as NetworkX writes it (`nodes` with `id`,
`links` or `edges` with `source` and `target`): undirected, without parallel edges.
"""
_CSV: dict[str, Example] = {
    "graph": Example(summary="Edges", value="source,target\n0,1\n1,2\n"),
    "table": Example(
        summary="Rows of the described attributes",
        value="sex,age,income\nFemale,39,<=50K\nMale,52,>50K\n",
    ),
    "prefix": Example(summary="How many public values apply", value="cutoff\n3\n"),
}
_GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
    '<node id="0"/><node id="1"/><edge source="0" target="1"/></graph></graphml>'
)
_PARQUET: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_XML: dict[str, Any] = {"schema": {"type": "string"}, "example": _GRAPHML}
#: The contents of uploads for the OpenAPI document, by media type. Each example fits the example
#: registration of its kind of dataset.
CONTENT: dict[str, Any] = {
    "text/csv": {"schema": {"type": "string"}, "examples": _CSV},
    "application/vnd.apache.parquet": _PARQUET,
    "application/x-parquet": _PARQUET,
    "application/graphml+xml": _XML,
    "application/xml": _XML,
    "application/json": {
        "schema": {"type": "object"},
        "example": {"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}]},
    },
}

MadeUpFormat = Literal["csv", "parquet"]
#: The media type of a file of made-up records, by the name of its format.
MADE_UP: dict[MadeUpFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
