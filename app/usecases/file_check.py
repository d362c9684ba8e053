"""Checks a file of records against a description by the rules of uploads, without a service.

The same functions read an upload, so a rule stands in one place. The limits that a service sets on
memory and preparation are its own, and are not checked here.
"""

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from app.contract.descriptions import NodeCount, Registration
from storage.errors import InvalidRecords, TooLarge, UnsupportedMediaType
from storage.ingest import Truncation, UploadLimits, read_records
from storage.ingest.node_list import read_node_list

_REGISTRATION: TypeAdapter[Any] = TypeAdapter(Registration)


@dataclass(frozen=True)
class Findings:
    """The reasons to refuse a description and a file; both empty if an upload would succeed.

    Texts name places of the file and members of the description. None quotes a cell.
    """

    description: tuple[str, ...] = ()
    records: tuple[str, ...] = ()


def check(
    description: bytes,
    records: Path,
    *,
    media_type: str,
    gzipped: bool = False,
    nodes: Path | None = None,
) -> Findings:
    """Hold the records in a file against a description as ``POST /v1/datasets`` takes it.

    ``nodes``: the list of names that a graph needs whose description has no nodes.
    Raises: OSError if a file cannot be read.
    """
    try:
        registration = _REGISTRATION.validate_json(description)
    except ValidationError as error:
        return Findings(description=_reasons(error))
    try:
        domain = _with_nodes(registration, nodes)
        if domain is None:
            return Findings(description=("nodes: add the list of the graph's nodes, --nodes",))
        # Of the rows of one person, a service keeps a limited number, chosen by a secret key of its
        # own. The number of kept rows does not depend on the key, so a random key serves for this
        # check.
        key = Truncation(registration.records_per_person, secrets.token_bytes(32))
        read_records(
            records,
            media_type=media_type,
            gzipped=gzipped,
            domain=domain,
            limits=UploadLimits(),
            persons=key,
        )
    except InvalidRecords as refused:
        return Findings(records=tuple(text for _, _, text in refused.errors))
    except (TooLarge, UnsupportedMediaType) as refused:
        return Findings(records=(str(refused),))
    except ValueError as refused:
        return Findings(description=(str(refused),))
    return Findings()


def _with_nodes(registration: Any, nodes: Path | None) -> Any:
    """The domain that a registration describes; None for a graph without its nodes.

    Raises: ValueError if the list has too few nodes for the described ``max_degree``.
    """
    domain = registration.domain()
    if domain is not None or nodes is None:
        return domain
    limit = UploadLimits().decompressed_bytes
    labels = read_node_list(nodes, gzipped=nodes.suffix == ".gz", limit=limit)
    counted = registration.model_copy(update={"nodes": NodeCount(count=len(labels))})
    return replace(counted.domain(), labels=labels)


def _reasons(error: ValidationError) -> tuple[str, ...]:
    """One reason for each member that is not valid, in the order of the description."""
    reasons: dict[str, str] = {}
    for fault in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in _place(fault)) or "the description"
        is_open = fault["input"] is None and fault["type"] != "missing"
        reason = "null: decide it without looking at the records" if is_open else fault["msg"]
        reasons.setdefault(place, f"{place}: {reason}")
    # A list with faulty items is also reported as too short. Only the faults of its items are
    # returned.
    inside = {place.rpartition(".")[0].partition(".")[0] for place in reasons}
    return tuple(reason for place, reason in reasons.items() if place not in inside)


def _place(fault: ErrorDetails) -> list[int | str]:
    """The members that lead to a fault, without the names of the models that were tried."""
    tried = ("graph", "table", "prefix", "categorical", "numeric", "date")
    parts = [part for part in fault["loc"] if part not in tried]
    return [part for part in parts if isinstance(part, int) or part.isidentifier()]
