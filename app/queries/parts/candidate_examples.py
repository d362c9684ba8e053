"""Candidates of every kind over a dataset, from its public description, for examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mechanisms.model.domains import Attribute, Dataset, GraphDomain, NumericAttribute, TableDomain
from mechanisms.utilities import UTILITIES


def utilities_of(dataset: Dataset, candidates: str) -> list[str]:
    """The names of the utilities that compare such candidates under the dataset's relation."""
    return [
        one.name
        for one in UTILITIES.values()
        if one.candidates == candidates and dataset.neighbouring in one.relations
    ]


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
    inputs = [one for one in domain.attributes if one.name != domain.class_attribute]
    trees = [_stump(one, classes) for one in inputs]
    return {
        "attributes": {"attributes": [one.name for one in inputs]},
        "values": {"values_of": inputs[0].name},
        "trees": {"trees": [*trees, _branches(inputs[0], classes)], "positive_class": classes[0]},
    }


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
