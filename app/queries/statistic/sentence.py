"""Writes a statistic query, with its condition on records, as a plain English question."""

from collections.abc import Mapping
from typing import Any

from app.queries.parts.condition_words import phrase
from app.queries.parts.sentences import words


def sentence(statistic: str, fields: Mapping[str, Any], place: str) -> str:
    """Returns the question. ``fields`` are those of the statistic, ``place`` names the dataset."""
    where = f" where {phrase(fields['where'])}" if "where" in fields else ""
    match statistic:
        case "count":
            return f"How many records of {place} are there{where}?"
        case "sum" | "mean" | "median":
            of = fields["attribute"]
            return f"What is the {statistic} of {of} over the records of {place}{where}?"
        case "quantile":
            of, share = fields["attribute"], fields["quantile"]
            return f"What is the {share:g} quantile of {of} over the records of {place}{where}?"
        case "smallest_sum":
            values = f"the smallest public values of {place}, those up to its private cut-off"
            return f"What is the sum of {values}?"
        case "two_triangles":
            return f"How many pairs of triangles that share an edge does {place} have?"
        case "stars":
            return f"How many stars of {fields['k']} edges does {place} have?"
        case _:
            return f"How many {words(statistic)} does {place} have?"
