"""Domains as JSON texts and back: exact, for Python writes floats so that they read back equal.

Node labels are not in the text but in the dataset's folder: a list may have a million names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mechanisms.model.domains import (
    Attribute,
    CategoricalAttribute,
    Domain,
    GraphDomain,
    NumericAttribute,
    PrefixDomain,
    TableDomain,
)

Labels = Sequence[int] | Sequence[str]
#: How the text of a graph whose nodes have names ends, and no other text.
LABELLED = '"labelled":true}'


def encode_domain(domain: Domain) -> str:
    return json.dumps(_domain(domain), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode_domain(text: str, *, labels: Callable[[int], Labels], rows: int | None = None) -> Domain:
    """The domain in ``text``.

    Args:
        labels: opens the labels of so many nodes; called only when the graph has some.
        rows: the row count of a ``replace`` table, when an upload has fixed it.
    """
    fields = json.loads(text)
    kind = fields.pop("kind")
    if kind == "graph":
        labelled = fields.pop("labelled")
        return GraphDomain(**fields, labels=labels(fields["nodes"]) if labelled else None)
    if kind == "prefix":
        return PrefixDomain(tuple(fields["public_values"]))
    fields["attributes"] = tuple(_attribute(attribute) for attribute in fields["attributes"])
    table = TableDomain(**fields)
    return table if rows is None else replace(table, rows=rows)


def _domain(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, GraphDomain):
        return {
            "kind": "graph",
            "nodes": domain.nodes,
            "max_degree": domain.max_degree,
            "labelled": domain.labels is not None,
        }
    if isinstance(domain, PrefixDomain):
        return {"kind": "prefix", "public_values": domain.public_values}
    return {
        "kind": "table",
        "attributes": [_fields(attribute) for attribute in domain.attributes],
        "class_attribute": domain.class_attribute,
        "rows": domain.rows,
        "max_rows": domain.max_rows,
        "min_rows": domain.min_rows,
    }


def _fields(attribute: Attribute) -> dict[str, Any]:
    if isinstance(attribute, CategoricalAttribute):
        return {
            "kind": "categorical",
            "name": attribute.name,
            "values": attribute.values,
            "missing": attribute.missing,
        }
    return {
        "kind": "numeric",
        "name": attribute.name,
        "lower": attribute.lower,
        "upper": attribute.upper,
        "edges": attribute.edges,
        "missing": attribute.missing,
        "clamp": attribute.clamp,
    }


def _attribute(fields: dict[str, Any]) -> Attribute:
    kind = fields.pop("kind")
    if kind == "categorical":
        return CategoricalAttribute(**{**fields, "values": tuple(fields["values"])})
    return NumericAttribute(**{**fields, "edges": tuple(fields["edges"])})
