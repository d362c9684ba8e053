"""Examples of selections."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from app.queries.parts.candidate_examples import candidates_of, utilities_of
from app.queries.parts.examples import Example, Examples
from mechanisms.model.domains import Dataset
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS

DEGREE: dict[str, Any] = {
    "dataset": "github",
    "epsilon": "0.1",
    "query": {"kind": "selection", "utilities": [{"name": "degree"}]},
}


def _every(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for kind, candidates in candidates_of(dataset).items():
        names = utilities_of(dataset, kind)
        for name, sensitivity, selector in product(names, Sensitivity, SELECTORS):
            yield {
                "kind": "selection",
                "candidates": candidates,
                "utilities": [{"name": name}],
                "sensitivity": sensitivity.value,
                "selector": selector,
            }


EXAMPLES = Examples(
    request=DEGREE,
    answer={"selected": 31890},
    every=_every,
    queries={"selection": Example("One node of high degree", DEGREE)},
    quotes={
        "target": Example(
            "The epsilon that keeps the selected node close to the best",
            {
                "dataset": "github",
                "target": {"score_below_best": 50},
                "query": DEGREE["query"],
            },
        )
    },
)
