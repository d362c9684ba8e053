"""What may be selected: a public, finite, non-empty list, the same for neighbouring datasets."""

from __future__ import annotations

from typing import ClassVar, Protocol

from mechanisms.model.domains import Dataset, GraphDomain
from mechanisms.model.errors import UnsupportedQuery


class Candidates(Protocol):
    """A list of candidates over a dataset's public domain."""

    @property
    def kind(self) -> str:
        """Names the kind; utilities declare which kind they measure."""
        ...

    def count(self, dataset: Dataset) -> int:
        """How many there are; UnsupportedQuery when the dataset has no such candidates."""
        ...

    def label(self, dataset: Dataset, index: int) -> int | str:
        """How the ``index``-th one is named in an answer."""
        ...


class AllNodes:
    """Every node of a graph, in the order of its public list."""

    kind = "nodes"
    description: ClassVar[str] = "All nodes of a graph; a selected one comes back as its id."

    def count(self, dataset: Dataset) -> int:
        return _graph(dataset).nodes

    def label(self, dataset: Dataset, index: int) -> int | str:
        return _graph(dataset).label(index)


def _graph(dataset: Dataset) -> GraphDomain:
    if not isinstance(dataset.domain, GraphDomain):
        raise UnsupportedQuery("nodes are candidates of graphs only", supported={"kind": "graph"})
    return dataset.domain
