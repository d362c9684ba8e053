"""Examples of selection queries for the documentation, the tests and the warm-up."""

from functools import partial
from typing import Any

from app.queries.parts.dataset_examples import selections
from app.queries.parts.examples import Example, Examples

DEGREE: dict[str, Any] = {
    "dataset": "github",
    "epsilon": "0.1",
    "query": {"kind": "selection", "utilities": [{"name": "degree"}]},
}


EXAMPLES = Examples(
    request=DEGREE,
    answer={
        "selected": 31890,
        "resolved": {
            "sensitivity": "global",
            "selector": "permute_and_flip",
            "draws": "peeled",
            "reason": (
                "One change moves a utility by the same amount everywhere, so all ways agree."
            ),
        },
        "order_preserving": True,
    },
    every=partial(selections, draws={"kind": "selection"}),
    queries={"selection": Example("One node of high degree", DEGREE)},
    plain=({"kind": "selection", "utilities": [{"name": "degree"}]},),
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
