"""The sentence of a statistic, with its condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.queries.parts.sentences import listing

if TYPE_CHECKING:
    from app.queries.statistic.body import StatisticQuery


def sentence(query: StatisticQuery, place: str) -> str:
    """What is asked about ``place``, the dataset and its version."""
    of_an_attribute = f"of {query.attribute} over the records of {place}?"
    match query.statistic:
        case "count":
            where = "" if query.where is None else f" where {_phrase(query.where)}"
            return f"How many records of {place} are there{where}?"
        case "sum" | "mean" | "median":
            return f"What is the {query.statistic} {of_an_attribute}"
        case "quantile":
            return f"What is the {query.quantile:g} quantile {of_an_attribute}"
        case "smallest_sum":
            return f"What is the sum of the public values of {place} that apply?"
        case "edges" | "triangles":
            return f"How many {query.statistic} does {place} have?"
        case "two_triangles":
            return f"How many pairs of triangles that share an edge does {place} have?"
        case "stars":
            return f"How many stars of {query.k} edges does {place} have?"


def _phrase(where: Mapping[str, Any]) -> str:
    if "not" in where:
        return f"not ({_phrase(where['not'])})"
    for name, word, empty in (("all", "and", "anything holds"), ("any", "or", "nothing holds")):
        if name in where:
            return listing(map(_part, where[name]), word) if where[name] else empty
    name = where["attribute"]
    if "in" in where:
        values = listing((str(value) for value in where["in"]), "or")
        return f"{name} is {values}" if where["in"] else "nothing holds"
    ends = [f"at least {where['from']}"] if "from" in where else []
    ends += [f"below {where['to']}"] if "to" in where else []
    return f"{name} is {' and '.join(ends)}"


def _part(where: Mapping[str, Any]) -> str:
    """A condition of conditions is put in parentheses."""
    return f"({_phrase(where)})" if where.keys() & {"all", "any"} else _phrase(where)
