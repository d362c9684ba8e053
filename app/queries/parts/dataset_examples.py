"""What examples take from the public description of a dataset: attributes, contexts, candidates."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from app.queries.parts.candidates import utilities_of
from mechanisms.distances.options import Rule
from mechanisms.model.domains import Attribute, Dataset, GraphDomain, NumericAttribute, TableDomain
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS

#: Levels that one byte tells apart.
BYTE = 256


def attribute_lists(dataset: Dataset) -> Iterator[list[str] | None]:
    """Those whose values fit a byte, where they are several, and all: their columns differ in type.

    Nothing for a dataset that is no table.
    """
    domain = dataset.domain
    if not isinstance(domain, TableDomain):
        return
    inputs = _inputs(domain)
    narrow = [one.name for one in inputs if len(one.levels) <= BYTE]
    if 2 <= len(narrow) < len(inputs):
        yield narrow
    yield None


def contexts(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Every way to find the context of an attribute of a table."""
    yield from ({"context": "baseline", "selection_rule": rule.value} for rule in Rule)
    domain = dataset.domain
    # Entropies need a public lower bound on the rows.
    if isinstance(domain, TableDomain) and (domain.rows or domain.min_rows):
        yield {"context": "mean_su"}
    for context, sensitivity in product(("max_relevance", "max_dependency"), ("global", "local")):
        # With one attribute per context there is a choice wherever there are three attributes.
        yield {"context": context, "sensitivity": sensitivity, "context_size": 1}


def candidates_of(dataset: Dataset) -> Mapping[str, Mapping[str, Any]]:
    """By kind of candidates: a list of them that fits the dataset.

    Nothing for a table without a class attribute, nor for a dataset of another kind.
    """
    domain = dataset.domain
    if isinstance(domain, GraphDomain):
        return {"nodes": {"nodes": "all"}}
    if not isinstance(domain, TableDomain) or domain.class_attribute is None:
        return {}
    classes = domain.attribute(domain.class_attribute).levels
    inputs = _inputs(domain)
    trees = [_stump(one, classes) for one in inputs]
    return {
        "attributes": {"attributes": [one.name for one in inputs]},
        "values": {"values_of": inputs[0].name},
        "trees": {"trees": [*trees, _branches(inputs[0], classes)], "positive_class": classes[0]},
    }


def selections(dataset: Dataset, draws: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Queries that select by one utility: each kind of candidates, in every way to select."""
    for kind, candidates in candidates_of(dataset).items():
        utilities = utilities_of(kind, dataset.neighbouring)
        for utility, sensitivity, selector in product(utilities, Sensitivity, SELECTORS):
            yield {
                **draws,
                "candidates": candidates,
                "utilities": [{"name": utility.name}],
                "sensitivity": sensitivity.value,
                "selector": selector,
            }


def _inputs(table: TableDomain) -> list[Attribute]:
    """All attributes but the class attribute."""
    return [one for one in table.attributes if one.name != table.class_attribute]


def _stump(attribute: Attribute, classes: tuple[str, ...]) -> dict[str, Any]:
    """A tree of one split in two."""
    first, second = {"label": classes[0]}, {"label": classes[1]}
    if isinstance(attribute, NumericAttribute):
        middle = (attribute.lower + attribute.upper) / 2
        split = {"threshold": middle, "below": first, "above": second}
    else:
        split = {"value": attribute.levels[0], "equal": first, "other": second}
    return {"attribute": attribute.name, **split}


def _branches(attribute: Attribute, classes: tuple[str, ...]) -> dict[str, Any]:
    """A tree of one split into all levels."""
    leaves = {
        level: {"label": classes[number % len(classes)]}
        for number, level in enumerate(attribute.levels)
    }
    return {"attribute": attribute.name, "branches": leaves}
