"""Examples of coins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.queries.parts.examples import Example, Examples, TypicalQuestion
from mechanisms.model.domains import Dataset

HEADS: dict[str, Any] = {
    "dataset": "github",
    "epsilon": "0.1",
    "query": {"kind": "coin", "side": "heads"},
}


def _every(dataset: Dataset) -> Iterator[dict[str, Any]]:
    del dataset
    yield HEADS["query"]


EXAMPLES = Examples(
    request=HEADS,
    answer={"shows": "heads"},
    every=_every,
    queries={"coin": Example("A coin", HEADS)},
    quotes={"coin": Example("The price of a coin", HEADS)},
    typical=(
        TypicalQuestion("graph", "toss of a coin", HEADS["query"], "wrong_side", "wrong in {}"),
    ),
)
