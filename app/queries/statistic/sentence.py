"""Writes a statistic query, with its condition on records, as a plain English question."""

from collections.abc import Mapping
from typing import Any

from app.queries.parts.sentences import listing, words

#: The texts of empty conditions: "all" of no parts always holds, "any" of none never does.
ALWAYS, NEVER = "the condition always holds", "the condition never holds"


def sentence(statistic: str, fields: Mapping[str, Any], place: str) -> str:
    """Returns the question. ``fields`` are those of the statistic, ``place`` names the dataset."""
    match statistic:
        case "count":
            where = f" where {_phrase(fields['where'])}" if "where" in fields else ""
            return f"How many records of {place} are there{where}?"
        case "sum" | "mean" | "median":
            of = fields["attribute"]
            return f"What is the {statistic} of {of} over the records of {place}?"
        case "quantile":
            of, share = fields["attribute"], fields["quantile"]
            return f"What is the {share:g} quantile of {of} over the records of {place}?"
        case "smallest_sum":
            return f"What is the sum of the public values of {place} that apply?"
        case "two_triangles":
            return f"How many pairs of triangles that share an edge does {place} have?"
        case "stars":
            return f"How many stars of {fields['k']} edges does {place} have?"
        case _:
            return f"How many {words(statistic)} does {place} have?"


def _phrase(where: Mapping[str, Any]) -> str:
    if "not" in where:
        return f"not ({_phrase(where['not'])})"
    for name, word, empty in (("all", "and", ALWAYS), ("any", "or", NEVER)):
        if name in where:
            return listing(map(_part, where[name]), word) if where[name] else empty
    name = where["attribute"]
    if "in" in where:
        values = [str(value) for value in where["in"]]
        return f"{name} is {listing(values, 'or')}" if values else NEVER
    ends = [f"at least {where['from']}"] if "from" in where else []
    ends += [f"below {where['to']}"] if "to" in where else []
    return f"{name} is {' and '.join(ends)}"


def _part(where: Mapping[str, Any]) -> str:
    """Writes one part of a condition; parentheses enclose a part that itself has parts."""
    return f"({_phrase(where)})" if where.keys() & {"all", "any"} else _phrase(where)
