"""Examples of clustering queries for the documentation, the tests and the warm-up."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from app.queries.parts.dataset_examples import attribute_lists
from app.queries.parts.examples import Example, Examples
from mechanisms.model.domains import Dataset
from mechanisms.model.number import whole_numbers

FIVE: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "4",
    "query": {
        "kind": "clustering",
        "clusters": 5,
        "iterations": 5,
        "encoding": "learned_distance",
        "distance": {"context": "max_relevance"},
        "distance_share": 0.5,
    },
}


def _every(dataset: Dataset) -> Iterator[dict[str, Any]]:
    encodings = ("learned_distance", "one_hot")
    for attributes, encoding in product(attribute_lists(dataset), encodings):
        yield {
            "kind": "clustering",
            "clusters": 2,
            "iterations": 1,
            "encoding": encoding,
            "distance": {"attributes": attributes},
        }


def _gaussian(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields centres of all attributes by learned distances, which need tables as well."""
    for body in _every(dataset):
        if body["distance"]["attributes"] is None and body["encoding"] == "learned_distance":
            yield body


EXAMPLES = Examples(
    request=FIVE,
    answer={
        "centres": [
            [0.48, 0.11],
            [-0.47, 0.3],
            [0.46, -0.29],
            [-0.44, -0.2],
            [0.02, 0.33],
        ],
        "sizes": whole_numbers([4211, 6034, 5120, 2987, 3310], 120),
        "confidence": 0.95,
        "encoding": {
            "kind": "learned_distance",
            "attributes": [
                {"name": "sex", "values": ["Female", "Male"], "vectors": [[0.5], [-0.5]]},
                {
                    "name": "marital_status",
                    "values": ["Married", "Never married", "Separated"],
                    "vectors": [[0.35], [-0.3], [-0.05]],
                },
            ],
        },
    },
    plain=({"kind": "clustering", "clusters": 2},),
    every=_every,
    gaussian=_gaussian,
    queries={"clustering": Example("Five centres, by learned distances", FIVE)},
)
