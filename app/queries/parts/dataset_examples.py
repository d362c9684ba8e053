"""Parts of example queries that fit a dataset, built from its public description alone."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from app.queries.parts.candidates import utilities_of
from mechanisms.distances.options import Rule
from mechanisms.model.domains import Attribute, Dataset, GraphDomain, NumericAttribute, TableDomain
from mechanisms.model.open_domain import OpenAttribute
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS

#: The codes of an attribute take one byte if it has at most this many levels (distinct values), and
#: otherwise two. Each size runs other compiled code.
BYTE = 256


def described_table(dataset: Dataset) -> TableDomain | None:
    """Returns the domain of a table whose attributes all have public levels; None for others."""
    domain = dataset.domain
    return domain if isinstance(domain, TableDomain) and not open_attributes(dataset) else None


def open_attributes(dataset: Dataset) -> list[str]:
    """Returns the names of the attributes of a table whose values are private."""
    domain = dataset.domain
    attributes = domain.attributes if isinstance(domain, TableDomain) else ()
    return [one.name for one in attributes if isinstance(one, OpenAttribute)]


def attribute_lists(dataset: Dataset) -> Iterator[list[str] | None]:
    """Yields lists of attributes whose columns have different types; ``None`` means all attributes.

    The first list holds the attributes whose values fit a byte, if at least two but not all do.
    Yields nothing for a dataset that is not a table, or that has an open attribute.
    """
    domain = described_table(dataset)
    if domain is None:
        return
    inputs = _inputs(domain)
    narrow = [one.name for one in inputs if len(one.levels) <= BYTE]
    if 2 <= len(narrow) < len(inputs):
        yield narrow
    yield None


def contexts(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields options of a metric, one for every way to choose the context of an attribute."""
    yield from ({"context": "baseline", "selection_rule": rule.value} for rule in Rule)
    domain = dataset.domain
    # The method ``mean_su`` chooses contexts (the attributes from which distances are learned) by
    # noisy entropies. Their noise follows from a public lower bound on the number of rows, so only
    # tables with such a bound offer this method.
    if isinstance(domain, TableDomain) and (domain.rows or domain.min_rows):
        yield {"context": "mean_su"}
    for context, sensitivity in product(("max_relevance", "max_dependency"), ("global", "local")):
        # The example requests the smallest context (the attributes from which distances are
        # learned), of one attribute. So even in a table of three attributes there is a choice: two
        # contexts are possible for each attribute.
        yield {"context": context, "sensitivity": sensitivity, "context_size": 1}


def candidates_of(dataset: Dataset) -> Mapping[str, Mapping[str, Any]]:
    """Returns, for each kind of candidates, an example list that fits the dataset.

    Returns nothing for a table without a class attribute or with an open one, or if it is neither
    table nor graph.
    """
    if isinstance(dataset.domain, GraphDomain):
        return {"nodes": {"nodes": "all"}}
    domain = described_table(dataset)
    if domain is None or domain.class_attribute is None:
        return {}
    classes = domain.attribute(domain.class_attribute).levels
    inputs = _inputs(domain)
    if not inputs:
        return {}
    trees = [_stump(one, classes) for one in inputs]
    # A choice among attributes needs two of them.
    names = [one.name for one in inputs]
    return {
        **({"attributes": {"attributes": names}} if len(names) > 1 else {}),
        "values": {"values_of": inputs[0].name},
        "trees": {"trees": [*trees, _branches(inputs[0], classes)], "positive_class": classes[0]},
    }


def selections(dataset: Dataset, draws: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields queries by one utility, for every utility, sensitivity and selector that fit."""
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
    """Returns all attributes except the class attribute, which a tree predicts."""
    return [one for one in table.attributes if one.name != table.class_attribute]


def _stump(attribute: Attribute, classes: tuple[str, ...]) -> dict[str, Any]:
    """Returns a decision tree with one binary split on ``attribute``."""
    first, second = {"label": classes[0]}, {"label": classes[1]}
    if isinstance(attribute, NumericAttribute):
        middle = (attribute.lower + attribute.upper) / 2
        split = {"threshold": middle, "below": first, "above": second}
    else:
        split = {"value": attribute.levels[0], "equal": first, "other": second}
    return {"attribute": attribute.name, **split}


def _branches(attribute: Attribute, classes: tuple[str, ...]) -> dict[str, Any]:
    """Returns a decision tree whose root has one branch per level (value) of ``attribute``."""
    leaves = {
        level: {"label": classes[number % len(classes)]}
        for number, level in enumerate(attribute.levels)
    }
    return {"attribute": attribute.name, "branches": leaves}
