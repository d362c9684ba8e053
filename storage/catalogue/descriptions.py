"""Writes domains as JSON texts and reads them. Python writes floats exactly, so nothing is lost.

Node labels are in the dataset's folder and not in the text, because there may be a million.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import (
    CategoricalAttribute,
    Domain,
    GraphDomain,
    NumericAttribute,
    PrefixDomain,
    TableDomain,
)
from mechanisms.model.open_domain import OpenAttribute

Labels = Sequence[int] | Sequence[str]
#: The text with which the stored domain of a graph ends if its nodes have names. No other stored
#: domain ends with it, so this end shows whether there are names.
LABELLED = '"labelled":true}'
KINDS: dict[str, type[Any]] = {
    "graph": GraphDomain,
    "table": TableDomain,
    "prefix": PrefixDomain,
    "categorical": CategoricalAttribute,
    "numeric": NumericAttribute,
    "date": DateAttribute,
    "open": OpenAttribute,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


def encode_domain(domain: Domain) -> str:
    return json.dumps(
        domain, default=_encoded, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def decode_domain(text: str, *, labels: Callable[[int], Labels], rows: int | None = None) -> Domain:
    """The domain in ``text``.

    Args:
        labels: opens the labels, given the number of nodes; called only if nodes have names.
        rows: the row count of a table under the relation ``replace``, if an upload has fixed it.
    """

    def decoded(values: dict[str, Any]) -> Any:
        kind, labelled = KINDS[values.pop("kind")], values.pop("labelled", False)
        values = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return kind(**values, labels=labels(values["nodes"])) if labelled else kind(**values)

    domain: Domain = json.loads(text, object_hook=decoded)
    if rows is None or not isinstance(domain, TableDomain):
        return domain
    return replace(domain, rows=rows)


def _encoded(value: Any) -> dict[str, Any]:
    """The fields of a dataclass in their order, which is a part of the stored format."""
    content = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, GraphDomain):
        content["labelled"] = content.pop("labels") is not None
    if isinstance(value, TableDomain):
        del content["level_cells"]  # not stored, because all registered tables have the same value
        if value.person is None:
            # Texts that were stored before this field existed lack it. New texts must equal them.
            del content["person"]
    return {"kind": _NAMES[type(value)], **content}
