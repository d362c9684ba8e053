"""Reads JSON graphs as NetworkX writes them: {"nodes": [{"id": …}], "links" or "edges": [{…}]}."""

import json
from pathlib import Path
from typing import Any, NoReturn

from mechanisms.model.domains import GraphDomain
from storage.ingest.batches import Numbering
from storage.ingest.documents import Names, check_size, graph_of
from storage.ingest.graph import CodedGraph
from storage.ingest.limits import UploadLimits
from storage.ingest.refusals import WHOLE, Place, refuse


def read_node_link(path: Path, domain: GraphDomain, limits: UploadLimits) -> CodedGraph:
    """The simple undirected graph of a document; attributes of nodes, edges and graph are ignored.

    Ids must have the type of the domain's labels. Refusals number nodes and links from 1.
    Raises: InvalidRecords, TooLarge.
    """
    check_size(path.stat().st_size, limits.document_bytes)
    document = _parse(path.read_bytes())
    links = "links" if "links" in document else "edges"
    nodes = _ids(document, "nodes", "node", "id", domain)
    sources = _ids(document, links, "link", "source", domain)
    targets = _ids(document, links, "link", "target", domain)
    _check_simple(document)
    return graph_of(
        domain,
        nodes,
        Numbering(1, "node"),
        sources,
        targets,
        Numbering(1, "link"),
        limits.edges,
    )


def _parse(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        refuse(WHOLE, "encoding", "the document is not UTF-8")
    except (ValueError, RecursionError):  # integers of thousands of digits raise ValueError too
        refuse(WHOLE, "json", "the document is not JSON, or nested too deeply")
    if not isinstance(document, dict):
        _refuse_form()
    return document


def _refuse_constant(_: str) -> NoReturn:
    refuse(WHOLE, "json", "NaN and Infinity are not JSON")


def _ids(document: dict[str, Any], key: str, unit: str, field: str, domain: GraphDomain) -> Names:
    """The field ``field`` of every object in a list; each must have the type of the labels."""
    id_type = int if domain.labels is None else type(domain.labels[0])
    listed = document.get(key)
    if not isinstance(listed, list):
        _refuse_form()
    for number, item in enumerate(listed, 1):
        place: Place = (unit, number, field)
        # The type is compared, because `isinstance` would accept true for the integer 1.
        if not isinstance(item, dict) or type(item.get(field)) is not id_type:
            word = "an integer" if id_type is int else "a string"
            refuse(place, "node_link", f"{unit} {number}: {field} is not {word}")
        if not _storable(item[field]):
            refuse(place, "unknown_node", f"{unit} {number}: not a node of this dataset")
    return [item[field] for item in listed]


def _storable(name: int | str) -> bool:
    """True if a name can be a label: an integer of 64 bits, or text without lone surrogates."""
    if isinstance(name, int):
        return -(2**63) <= name < 2**63
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _check_simple(document: dict[str, Any]) -> None:
    """Refuse a directed graph and a multigraph."""
    flags = [document.get(name, False) for name in ("directed", "multigraph")]
    if any(type(flag) is not bool for flag in flags):
        _refuse_form()
    if any(flags):
        refuse(WHOLE, "not_simple", "the graph is directed or a multigraph")


def _refuse_form() -> NoReturn:
    refuse(WHOLE, "node_link", "the document is not node-link data as NetworkX writes it")
