"""Reads GraphML: expat parses the document first, then NetworkX checks that it is undirected.

Danger: XML entities could expand or be fetched from elsewhere. So the parse with expat refuses any
document type. It also collects the nodes and the line of every edge, which NetworkX does not.
"""

from pathlib import Path
from typing import Any
from xml.parsers import expat

from mechanisms.model.domains import GraphDomain
from storage.ingest.batches import Numbering
from storage.ingest.documents import check_size, graph_of
from storage.ingest.graph import CodedGraph
from storage.ingest.limits import UploadLimits
from storage.ingest.refusals import WHOLE, refuse

DEEPEST = 32
NOT_GRAPHML = "the document is not GraphML of one graph"


def read_graphml(path: Path, domain: GraphDomain, limits: UploadLimits) -> CodedGraph:
    """The simple undirected graph of a document. Node ids compare as text; attributes are ignored.

    Raises: InvalidRecords for a document type, another encoding than UTF-8, more than one graph,
        nested graphs, hyperedges, a directed graph, and as ``EdgeCollector`` does; TooLarge.
    """
    check_size(path.stat().st_size, limits.document_bytes)
    walk = _Walk(path)
    _check_undirected(path)
    return graph_of(
        domain,
        walk.nodes,
        Numbering(1, numbers=walk.node_lines),
        walk.sources,
        walk.targets,
        Numbering(1, numbers=walk.edge_lines),
        limits.edges,
    )


class _Walk:
    """The nodes and edges of the document, in order, each with its line."""

    def __init__(self, path: Path) -> None:
        self.nodes: list[str] = []
        self.node_lines: list[int] = []
        self.sources: list[str] = []
        self.targets: list[str] = []
        self.edge_lines: list[int] = []
        self._open: list[str] = []
        self._graphs = 0
        # expat decodes the document as UTF-8, whatever encoding the document declares.
        self._parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        try:
            with path.open("rb") as file:
                self._parser.ParseFile(file)
        except expat.ExpatError as error:
            refuse(("line", error.lineno), "graphml", f"line {error.lineno} is not well-formed XML")
        if self._graphs != 1:
            refuse(WHOLE, "graphml", NOT_GRAPHML)

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        # Danger: NetworkX decodes by the declared encoding, and expat always as UTF-8. Under
        # another declaration the two would read different characters, so the document is refused.
        if encoding is not None and encoding.lower() not in ("utf-8", "us-ascii", "ascii"):
            refuse(WHOLE, "encoding", "the document is not UTF-8")

    def _doctype(self, *_: Any) -> None:
        self._refuse("has a document type, which is not accepted")

    def _start(self, qualified: str, attributes: dict[str, str]) -> None:
        name = qualified.rpartition(" ")[2]
        parents = tuple(self._open)
        self._open.append(name)
        if len(self._open) > DEEPEST:
            self._refuse(f"is nested deeper than {DEEPEST} elements")
        if not parents and name != "graphml":
            refuse(WHOLE, "graphml", NOT_GRAPHML)
        if name in ("hyperedge", "endpoint") or (name == "graph" and len(parents) != 1):
            self._refuse("has a hyperedge or a nested graph")
        line = self._parser.CurrentLineNumber
        if name == "graph":
            self._graphs += 1
        elif parents == ("graphml", "graph") and name == "node":
            self.nodes.append(self._attribute(attributes, "id"))
            self.node_lines.append(line)
        elif parents == ("graphml", "graph") and name == "edge":
            self.sources.append(self._attribute(attributes, "source"))
            self.targets.append(self._attribute(attributes, "target"))
            self.edge_lines.append(line)
        elif name in ("node", "edge"):
            self._refuse("has a node or an edge outside the graph")

    def _end(self, _: str) -> None:
        self._open.pop()

    def _attribute(self, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            self._refuse(f"lacks the attribute {name}")
        return attributes[name]

    def _refuse(self, fault: str) -> None:
        line = self._parser.CurrentLineNumber
        refuse(("line", line), "graphml", f"line {line} {fault}")


def _check_undirected(path: Path) -> None:
    import networkx as nx

    try:
        graph = nx.read_graphml(path)
    except Exception:
        # NetworkX also parses attribute types and extensions of graph editors, and fails on them by
        # many types of exception. So all are caught. The document was already found to be
        # well-formed, small and without entities.
        refuse(WHOLE, "graphml", NOT_GRAPHML)
    if graph.is_directed():
        refuse(WHOLE, "not_simple", "the graph is directed")
