"""Candidates of a selection: a public finite non-empty list, equal for neighbouring datasets."""

from typing import Protocol

from mechanisms.model.domains import Dataset, GraphDomain
from mechanisms.model.errors import UnsupportedQuery


class Candidates(Protocol):
    """A list of candidates over a dataset's public domain."""

    @property
    def kind(self) -> str:
        """The name of the kind; a utility declares the kind that it measures."""
        ...

    def count(self, dataset: Dataset) -> int:
        """The number of candidates. Raises: UnsupportedQuery when the dataset has none of this
        kind."""
        ...

    def label(self, dataset: Dataset, index: int) -> int | str:
        """The name of candidate ``index`` in an answer."""
        ...


class AllNodes:
    """All nodes of a graph, in the order of its public list."""

    kind = "nodes"
    description = "All nodes of a graph; a selected one comes back as its id."

    def count(self, dataset: Dataset) -> int:
        return graph_domain(dataset).nodes

    def label(self, dataset: Dataset, index: int) -> int | str:
        return graph_domain(dataset).label(index)


def graph_domain(dataset: Dataset) -> GraphDomain:
    """The public description of a graph. Raises: UnsupportedQuery for other kinds of dataset."""
    if not isinstance(dataset.domain, GraphDomain):
        raise UnsupportedQuery("this query is for graphs only", supported={"kind": "graph"})
    return dataset.domain
