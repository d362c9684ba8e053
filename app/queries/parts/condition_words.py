"""Writes a condition on records in plain English words."""

from collections.abc import Mapping
from typing import Any

from app.queries.parts.sentences import listing, number_text

#: The texts of conditions without parts: "all" of no parts always holds, "any" of none never does.
ALWAYS, NEVER = "the condition always holds", "the condition never holds"


def phrase(where: Mapping[str, Any]) -> str:
    """Returns a condition as it stands after "where", such as "age is at least 20"."""
    if "not" in where:
        return f"not ({phrase(where['not'])})"
    for name, word, empty in (("all", "and", ALWAYS), ("any", "or", NEVER)):
        if name in where:
            return listing(map(_part, where[name]), word) if where[name] else empty
    name = where["attribute"]
    if "in" in where:
        values = [_text(value) for value in where["in"]]
        return f"{name} is {listing(values, 'or')}" if values else NEVER
    of_dates = isinstance(where.get("from", where.get("to")), str)
    least, below = ("on or after", "before") if of_dates else ("at least", "below")
    ends = [f"{least} {_text(where['from'])}"] if "from" in where else []
    ends += [f"{below} {_text(where['to'])}"] if "to" in where else []
    return f"{name} is {' and '.join(ends)}"


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else number_text(value)


def _part(where: Mapping[str, Any]) -> str:
    """Writes one part of a condition, in parentheses if it has an "and" or "or" of its own."""
    has_several = where.keys() & {"all", "any"} or len(where.get("in", ())) > 1
    return f"({phrase(where)})" if has_several or {"from", "to"} <= where.keys() else phrase(where)
