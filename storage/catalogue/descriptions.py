"""Domains as JSON texts and back. The texts are exact, because Python writes floats exactly.

Node labels are in the dataset's folder and not in the text: a list may have a million names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
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
#: The end of the text of a graph whose nodes have names, and of no other text.
LABELLED = '"labelled":true}'


def encode_domain(domain: Domain) -> str:
    return json.dumps(_domain(domain), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode_domain(text: str, *, labels: Callable[[int], Labels], rows: int | None = None) -> Domain:
    """The domain in ``text``.

    Args:
        labels: opens the labels of a number of nodes; called only if the nodes have names.
        rows: the row count of a ``replace`` table, if an upload has fixed it.
    """
    values = json.loads(text)
    kind = values.pop("kind")
    if kind == "graph":
        labelled = values.pop("labelled")
        return GraphDomain(**values, labels=labels(values["nodes"]) if labelled else None)
    if kind == "prefix":
        return PrefixDomain(tuple(values["public_values"]))
    values["attributes"] = tuple(_attribute(attribute) for attribute in values["attributes"])
    table = TableDomain(**values)
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
        return _fields("prefix", domain)
    return _fields("table", domain, attributes=[_encoded(one) for one in domain.attributes])


def _encoded(attribute: Attribute) -> dict[str, Any]:
    if isinstance(attribute, CategoricalAttribute):
        return _fields("categorical", attribute)
    return _fields("numeric", attribute)


def _fields(
    kind: str, value: PrefixDomain | TableDomain | Attribute, **others: Any
) -> dict[str, Any]:
    """The fields of a dataclass in their order, which is a part of the stored format."""
    names = [field.name for field in fields(value)]
    return {"kind": kind, **{name: getattr(value, name) for name in names}, **others}


def _attribute(values: dict[str, Any]) -> Attribute:
    kind = values.pop("kind")
    if kind == "categorical":
        return CategoricalAttribute(**{**values, "values": tuple(values["values"])})
    return NumericAttribute(**{**values, "edges": tuple(values["edges"])})
