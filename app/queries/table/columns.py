"""A table as columns: a row for each cell, with its groups and the numbers of each aggregate."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from app.queries.parts.columns import NUMBER, Columns

#: Names of columns that ``explained`` adds or reads. An attribute of such a name would hide them,
#: so it is renamed.
OTHERS = ("question", "charge", "interval", "low", "high")


def groups_of(answer: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The labels of each row: all combinations, or of open groups those that came back."""
    by = answer["by"].values()
    return list(zip(*by, strict=True)) if answer.get("open") else list(product(*by))


def columns(answer: Mapping[str, Any]) -> Columns:
    """Numbers are named as ``count.value`` and ``count.low``; totals are not among the rows.

    An attribute of such a name, or of one that explains the answer, is named as ``by.count.value``.
    """
    by = answer["by"]
    cells = groups_of(answer)
    numbers = {
        f"{name}.{part}": lists[part]
        for name, lists in answer["cells"].items()
        for part in NUMBER
        if part in lists
    }
    marks = {"suppressed": answer["suppressed"]} if "suppressed" in answer else {}
    names = _free(by, {*numbers, *marks, *OTHERS})
    groups = {name: [labels[place] for labels in cells] for place, name in enumerate(names)}
    return {**groups, **numbers, **marks}


def _free(names: Iterable[str], taken: set[str]) -> list[str]:
    """Returns the names in order, each with as many ``by.`` before it as make it a new one."""
    free: list[str] = []
    for name in names:
        while name in taken:
            name = f"by.{name}"
        taken.add(name)
        free.append(name)
    return free
