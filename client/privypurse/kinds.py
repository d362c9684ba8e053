"""The kinds of queries, as typed functions; each names the type of its answer.

Omitted options take the service's defaults, which ``GET /v1/catalogue`` lists. A query is a plain
value: it can be quoted, sent and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack

from privypurse.amounts import Number, decimal_text
from privypurse.answers import Selection, TopK, Value
from privypurse.clusters import Clusters
from privypurse.distances import Distances
from privypurse.levels import Columns
from privypurse.trees import Trees

A = TypeVar("A")

#: A utility by name, or ``{"name": …, "weight": …}``, or a member of a Pareto score.
Utility = str | Mapping[str, Any]
Selector = Literal["permute_and_flip", "exponential"]


@dataclass(frozen=True)
class Query(Generic[A]):
    """A query without its dataset and price; ``read`` turns a reply into the answer."""

    body: Mapping[str, Any]
    read: Callable[[Mapping[str, Any], Columns], A]
    #: Whether ``read`` needs the public description of the table.
    described: bool = False


class SelectionOptions(TypedDict, total=False):
    candidates: Mapping[str, Any]
    objective: Literal["single", "weighted_sum", "pareto"]
    sensitivity: Literal["global", "local", "flattened", "shifted"]
    selector: Selector


class TopKOptions(SelectionOptions, total=False):
    draws: Literal["peeled", "one_shot"]
    rescore: bool


class TreeOptions(TypedDict, total=False):
    """``criterion`` and ``prune`` belong to id3, later options to the evolutionary search."""

    attributes: Sequence[str]
    class_attribute: str
    max_depth: int
    sensitivity: Literal["global", "local", "flattened", "shifted"]
    selector: Selector
    criterion: Literal["information_gain", "gini", "max"]
    prune: bool
    positive_class: str
    objective: Literal["weighted_sum", "pareto"]
    weights: Mapping[str, float]
    population: int
    generations: int
    selected: int
    initial_depth: int
    outputs: int


class MetricOptions(TypedDict, total=False):
    context: Literal["baseline", "mean_su", "max_relevance", "max_dependency"]
    selection_rule: Literal["mean_su", "not_redundant", "max_relevance", "max_dependency"]
    threshold: float
    context_size: int
    context_share: float
    sensitivity: Literal["global", "local"]
    selector: Selector
    attributes: Sequence[str]


class DistanceOptions(MetricOptions, total=False):
    embedding: bool


class ClusteringOptions(TypedDict, total=False):
    encoding: Literal["learned_distance", "one_hot"]
    distance: MetricOptions
    distance_share: float
    iterations: int
    initial_centres: Sequence[Mapping[str, str]]


class StatisticOptions(TypedDict, total=False):
    attribute: str
    quantile: float
    k: int
    where: Mapping[str, Any]
    mechanism: Literal[
        "laplace",
        "exponential",
        "smooth_sensitivity",
        "largest_local_sensitivities",
        "noisy_local_sensitivity",
        "ladder",
    ]
    delta: Number


StatisticName = Literal[
    "count",
    "sum",
    "mean",
    "median",
    "quantile",
    "smallest_sum",
    "edges",
    "triangles",
    "two_triangles",
    "stars",
]


def selection(
    utilities: Utility | Sequence[Utility], **options: Unpack[SelectionOptions]
) -> Query[Selection]:
    """One candidate, likely one whose utility is close to the highest."""
    body = {"kind": "selection", "utilities": _utilities(utilities), **options}
    return Query(body, Selection.read)


def top_k(
    k: int, utilities: Utility | Sequence[Utility], **options: Unpack[TopKOptions]
) -> Query[TopK]:
    """k candidates without replacement, in the order in which they were drawn."""
    body = {"kind": "top_k", "k": k, "utilities": _utilities(utilities), **options}
    return Query(body, TopK.read)


def tree(
    algorithm: Literal["id3", "evolutionary"] = "id3", **options: Unpack[TreeOptions]
) -> Query[Trees]:
    """A decision tree with noisy class counts, or several of high rates for one class."""
    return Query({"kind": "tree", "algorithm": algorithm, **options}, Trees.read, described=True)


def distance(target: str | None = None, **options: Unpack[DistanceOptions]) -> Query[Distances]:
    """Distances between the values of one attribute, or of each if ``target`` is None."""
    return Query({"kind": "distance", "target": target, **options}, Distances.read, described=True)


def clustering(clusters: int, **options: Unpack[ClusteringOptions]) -> Query[Clusters]:
    """Centres of the records, with the encoding that assigns your own records to them."""
    body = {"kind": "clustering", "clusters": clusters, **options}
    return Query(body, Clusters.read, described=True)


def statistic(name: StatisticName, **options: Unpack[StatisticOptions]) -> Query[Value]:
    """One number about a table or a graph."""
    body: dict[str, Any] = {"kind": "statistic", "statistic": name, **options}
    if "delta" in body:
        body["delta"] = decimal_text(body["delta"])
    return Query(body, Value.read)


def _utilities(utilities: Utility | Sequence[Utility]) -> list[Mapping[str, Any]]:
    members = [utilities] if isinstance(utilities, (str, Mapping)) else utilities
    return [{"name": one} if isinstance(one, str) else one for one in members]
