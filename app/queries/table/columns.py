"""A table as columns: a row for each cell, with its groups and the numbers of each aggregate."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from app.queries.parts.columns import NUMBER, Columns


def groups_of(answer: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The labels of each row: all combinations, or of open groups those that came back."""
    by = answer["by"].values()
    return list(zip(*by, strict=True)) if answer.get("open") else list(product(*by))


def columns(answer: Mapping[str, Any]) -> Columns:
    """Numbers are named as ``count.value`` and ``count.low``; totals are not among the rows."""
    by = answer["by"]
    cells = groups_of(answer)
    groups = {name: [labels[place] for labels in cells] for place, name in enumerate(by)}
    numbers = {
        f"{name}.{part}": lists[part]
        for name, lists in answer["cells"].items()
        for part in NUMBER
        if part in lists
    }
    marks = {"suppressed": answer["suppressed"]} if "suppressed" in answer else {}
    return {**groups, **numbers, **marks}
