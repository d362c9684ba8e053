"""Cluster centres as columns: a row for each cluster, with its size and its coordinates.

A coordinate is named by its attribute, and by a number where the attribute has several.
"""

from collections.abc import Mapping
from typing import Any

from app.queries.parts.columns import Columns, of_rows


def columns(answer: Mapping[str, Any]) -> Columns:
    centres = answer["centres"]
    sizes = answer.get("sizes", {})
    members = ("value", "low", "high", "suppressed")
    ends = [sizes.get(name, [None] * len(centres)) for name in members]
    names = ("cluster", "size", *members[1:], *_axes(answer["encoding"]["attributes"]))
    numbers = zip(*ends, strict=True)
    rows = (
        (cluster, *size, *centre)
        for cluster, (size, centre) in enumerate(zip(numbers, centres, strict=True), 1)
    )
    return of_rows(names, rows)


def _axes(attributes: list[Mapping[str, Any]]) -> list[str]:
    names = []
    for attribute in attributes:
        axes = len(attribute["vectors"][0])
        one = attribute["name"]
        names += [one] if axes == 1 else [f"{one}[{axis}]" for axis in range(axes)]
    return [f"at {name}" for name in names]
