"""Examples of top-k queries for the documentation, the tests and the warm-up."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from app.queries.parts.candidates import utilities_of
from app.queries.parts.dataset_examples import candidates_of, open_attributes, selections
from app.queries.parts.examples import Example, Examples, TypicalQuestion
from mechanisms.model.domains import Dataset
from mechanisms.model.sensitivity import Sensitivity

INFLUENTIAL: dict[str, Any] = {
    "dataset": "github",
    "epsilon": "0.5",
    "query": {
        "kind": "top_k",
        "k": 10,
        "utilities": [{"name": "egocentric_betweenness"}],
    },
}


def _every(dataset: Dataset) -> Iterator[dict[str, Any]]:
    query = {"kind": "top_k", "k": 2}
    yield from selections(dataset, {**query, "draws": "one_shot"})
    for utilities in _joint(dataset):
        # These three requests run different compiled code. ``subset`` draws the selected set, or
        # the set left out if most candidates are selected; ``laplace`` adds noise to all scores.
        yield {**query, **utilities, "selector": "subset"}
        yield {**query, **utilities, "k": 1, "selector": "subset"}
        yield {**query, **utilities, "selector": "laplace"}
        yield {**query, **utilities, "k": 1, "stages": {"shortlist": 2}}
        yield {**query, **utilities, "stages": {}}
    for kind, candidates in candidates_of(dataset).items():
        names = [one.name for one in utilities_of(kind, dataset.neighbouring)]
        for objective, sensitivity in product(_objectives(names), Sensitivity):
            choices = {"candidates": candidates, "sensitivity": sensitivity.value}
            yield {**query, **objective, **choices}
    for name in open_attributes(dataset)[:1]:
        values = {"candidates": {"values_of": name}, "delta": "0.000001"}
        yield {**query, **values, "utilities": [{"name": "count"}]}


def _joint(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields one utility of each kind of candidates."""
    for kind, candidates in candidates_of(dataset).items():
        first, *_ = utilities_of(kind, dataset.neighbouring)
        yield {"candidates": candidates, "utilities": [{"name": first.name}]}


def _objectives(names: list[str]) -> list[dict[str, Any]]:
    """Returns a sum and Pareto scores of two and of three members, which use different code."""
    members = [{"name": name} for name in names]
    total = {"weighted_sum": members}
    return [
        {"objective": "weighted_sum", "utilities": members},
        {"objective": "pareto", "rescore": True, "utilities": [total, members[0]]},
        {"objective": "pareto", "rescore": True, "utilities": [total, members[0], total]},
    ]


def _gaussian(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields a noisy vector of degrees."""
    if "nodes" in candidates_of(dataset):
        yield {"kind": "top_k", "k": 2, "utilities": [{"name": "degree"}], "selector": "laplace"}


EXAMPLES = Examples(
    request=INFLUENTIAL,
    answer={
        "selected": [7027, 9051, 13638, 18163, 19222, 27803, 31890, 35773, 36628, 36652],
        "ordered": False,
        "resolved": {
            "sensitivity": "shifted",
            "selector": "subset",
            "reason": "At a small ε, ranking by degree finds the nodes of high betweenness best.",
        },
        "order_preserving": False,
    },
    every=_every,
    gaussian=_gaussian,
    queries={"top_k": Example("The ten most influential nodes of a graph", INFLUENTIAL)},
    quotes={"top_k": Example("The price of ten nodes", INFLUENTIAL)},
    plain=({"kind": "top_k", "k": 1, "utilities": [{"name": "degree"}]},),
    typical=(
        TypicalQuestion(
            "graph",
            "ten nodes of highest degree",
            {
                "kind": "top_k",
                "k": 10,
                "utilities": [{"name": "degree"}],
                "sensitivity": "global",
            },
            "value_error",
            "each with its degree, within {}",
        ),
    ),
)
