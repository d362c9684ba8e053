"""Examples of tree queries for the documentation, the tests and the warm-up."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from app.queries.parts.dataset_examples import described_table
from app.queries.parts.examples import Example, Examples, TypicalQuestion
from mechanisms.model.domains import Dataset
from mechanisms.model.number import whole_number
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.trees.evolutionary.fitness import SENSITIVITIES
from mechanisms.trees.id3.split_rule import CRITERIA

GROWN: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "0.5",
    "query": {"kind": "tree", "algorithm": "id3", "max_depth": 4},
}
EVOLVED: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "0.5",
    "query": {
        "kind": "tree",
        "algorithm": "evolutionary",
        "positive_class": ">50K",
        "weights": {"true_positive_rate": 3, "true_negative_rate": 2},
    },
}
FOREST: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "0.1",
    "query": {"kind": "tree", "algorithm": "forest"},
}
BAYES: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "0.05",
    "query": {"kind": "tree", "algorithm": "naive_bayes"},
}


def _large(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields trees of one split, and of as few and as many nodes as one split may have; a search
    of many generations, and one of many trees.

    The first of each shows what a call takes, the second what a node takes, apart from the records.
    """
    domain = described_table(dataset)
    if domain is not None and domain.class_attribute is not None:
        others = [one for one in domain.attributes if one.name != domain.class_attribute]
        others.sort(key=lambda one: len(one.levels))
        for one in dict.fromkeys(one.name for one in (*others[:1], *others[-1:])):
            yield {"kind": "tree", "max_depth": 1, "attributes": [one], "prune": False}
        search = {
            "kind": "tree",
            "algorithm": "evolutionary",
            "positive_class": domain.attribute(domain.class_attribute).levels[0],
        }
        few = {"population": 4, "selected": 2, "initial_depth": 1, "max_depth": 1}
        yield {**search, **few, "generations": 8}
        yield {**search, "population": 200, "selected": 2, "generations": 1, "max_depth": 4}


def _every(dataset: Dataset) -> Iterator[dict[str, Any]]:
    domain = described_table(dataset)
    if domain is None or domain.class_attribute is None:
        return
    for criterion, sensitivity in product(CRITERIA, Sensitivity):
        yield {
            "kind": "tree",
            "max_depth": 2,
            "criterion": criterion,
            "sensitivity": sensitivity.value,
        }
    yield {"kind": "tree", "algorithm": "naive_bayes"}
    for splits in ("random", "private"):
        yield {
            "kind": "tree",
            "algorithm": "forest",
            "splits": splits,
            "trees": 2,
            "max_depth": 2,
        }
    searches = [*product(("weighted_sum", "pareto"), SENSITIVITIES), ("front", Sensitivity.LOCAL)]
    for objective, sensitivity in searches:
        yield {
            "kind": "tree",
            "algorithm": "evolutionary",
            "positive_class": domain.attribute(domain.class_attribute).levels[0],
            "objective": objective,
            "sensitivity": sensitivity.value,
            "population": 20,
            "generations": 1,
            "selected": 4,
            "initial_depth": 2,
            "max_depth": 2,
        }


def _gaussian(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields a tree, and a model of tables as those of a forest."""
    domain = described_table(dataset)
    if domain is not None and domain.class_attribute is not None:
        yield {"kind": "tree", "max_depth": 2}
        yield {"kind": "tree", "algorithm": "naive_bayes"}


def _counts(*counts: int) -> dict[str, Any]:
    """Counts of the two classes with noise of scale 10."""
    pairs = zip(("<=50K", ">50K"), counts, strict=True)
    return {label: whole_number(count, 30) for label, count in pairs}


EXAMPLES = Examples(
    request=GROWN,
    answer={
        "trees": [
            {
                "attribute": "marital_status",
                "branches": {
                    "Married": {"label": ">50K", "counts": _counts(9812, 10167)},
                    "Never married": {"label": "<=50K", "counts": _counts(14204, 731)},
                    "Separated": {"label": "<=50K", "counts": _counts(5390, 612)},
                },
            }
        ],
        "confidence": 0.95,
    },
    every=_every,
    large=_large,
    gaussian=_gaussian,
    queries={
        "tree": Example("A decision tree with noisy class counts", GROWN),
        "tree search": Example("A tree for one class, by its rates", EVOLVED),
        "forest": Example("Several trees that vote", FOREST),
        "naive Bayes": Example("Noisy counts that predict a class", BAYES),
    },
    typical=(
        TypicalQuestion(
            "table",
            "decision tree of depth 3",
            {"kind": "tree", "max_depth": 3},
            "leaf_count_error",
            "counts of leaves off by at most {}",
        ),
    ),
)
