"""Examples of distance queries for the documentation, the tests and the warm-up."""

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from app.queries.parts.dataset_examples import attribute_lists, contexts, described_table
from app.queries.parts.examples import Example, Examples, TypicalQuestion
from mechanisms.model.domains import Dataset

OCCUPATIONS: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "1",
    "query": {
        "kind": "distance",
        "target": "occupation",
        "context": "max_relevance",
        "context_size": 3,
        "sensitivity": "local",
        "embedding": True,
    },
}


def _every(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for attributes, context in product(attribute_lists(dataset), contexts(dataset)):
        yield {"kind": "distance", "attributes": attributes, **context}


def _gaussian(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields a metric by the baseline, and one whose context is drawn first."""
    yield from islice(_every(dataset), 1)
    domain = described_table(dataset)
    if domain is not None:
        names = [one.name for one in domain.attributes]
        drawn = {"context": "max_relevance", "context_size": 1}
        yield {"kind": "distance", "target": names[0], "attributes": names, **drawn}


EXAMPLES = Examples(
    request=OCCUPATIONS,
    answer={
        "distances": {
            "occupation": {
                "values": ["Craft", "Sales", "Service", "Technical"],
                "matrix": [
                    [0.0, 0.31, 0.27, 0.44],
                    [0.31, 0.0, 0.22, 0.25],
                    [0.27, 0.22, 0.0, 0.39],
                    [0.44, 0.25, 0.39, 0.0],
                ],
                "context": ["sex", "marital_status", "age"],
                "embedding": [
                    [0.21, 0.0, 0.0],
                    [-0.05, 0.13, 0.02],
                    [0.04, -0.1, 0.11],
                    [-0.2, -0.03, -0.13],
                ],
            }
        }
    },
    every=_every,
    gaussian=_gaussian,
    queries={"distance": Example("How far apart occupations are", OCCUPATIONS)},
    typical=(
        TypicalQuestion(
            "table",
            "distances of all attributes",
            {"kind": "distance"},
            "cell_noise_scale",
            "noise of scale {} on every cell",
        ),
    ),
)
