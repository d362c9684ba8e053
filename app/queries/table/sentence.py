"""Writes a table query as a plain English question: what is measured, by what, and of which."""

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from app.queries.parts.condition_words import phrase
from app.queries.parts.sentences import MOST_ITEMS, listing, number_text
from app.queries.table.parameters import (
    QUANTILES_DEFAULT,
    AggregateBody,
    By,
    ByEdges,
    ByGroups,
    MeasuredBody,
)


def sentence(
    aggregates: Sequence[AggregateBody],
    by: Sequence[By],
    totals: str | MeasuredBody,
    where: Mapping[str, Any] | None,
    place: str,
) -> str:
    """Returns the question. Totals that are sums of cells need no words; ``place`` is a version."""
    what = listing(map(_measure, aggregates))
    verb = "is" if sum(map(_numbers, aggregates)) == 1 else "are"
    parts = [f"What {verb} {what} in {place}"]
    if by:
        parts.append(f"by {listing(map(_grouping, by))}")
    if isinstance(totals, MeasuredBody):
        parts.append(f"and the same measured once more {listing(map(_total, totals.measured))}")
    if where is not None:
        parts.append(f"where {phrase(where)}")
    return f"{', '.join(parts)}?"


def _measure(one: AggregateBody) -> str:
    if one.attribute is None:
        return "the number of persons" if one.name == "persons" else "the number of records"
    if one.name == "quantiles":
        noun = "quantile" if _numbers(one) == 1 else "quantiles"
        shares = listing(map(number_text, one.quantiles or QUANTILES_DEFAULT))
        return f"the {shares} {noun} of {one.attribute}"
    return f"the {one.name} of {one.attribute}"


def _numbers(one: AggregateBody) -> int:
    """The number of values that this aggregate has in each cell."""
    return len(one.quantiles or QUANTILES_DEFAULT) if one.name == "quantiles" else 1


def _grouping(by: By) -> str:
    """One attribute, with its intervals or groups if the request names them."""
    if isinstance(by, ByEdges):
        return f"{by.attribute} ({_intervals(list(map(number_text, by.edges)))})"
    if isinstance(by, ByGroups):
        return f"{by.attribute} (grouped as {_groups(by.groups)})"
    return by


def _intervals(edges: Sequence[str]) -> str:
    """The intervals, such as "18 to below 40 and 40 to 65"; the last one holds its upper end."""
    pairs = list(pairwise(edges))
    texts = [f"{low} to below {high}" for low, high in pairs[:-1]]
    return listing([*texts, f"{pairs[-1][0]} to {pairs[-1][1]}"])


def _groups(groups: Mapping[str, Sequence[str]]) -> str:
    """The first groups with their first values, such as "“hands”: Craft; “none”: no value"."""
    texts = [
        f"“{name}”: {listing(values, 'or') if values else 'no value'}"
        for name, values in islice(groups.items(), MOST_ITEMS)
    ]
    if len(groups) > MOST_ITEMS:
        texts.append(f"{len(groups) - MOST_ITEMS} more")
    return "; ".join(texts)


def _total(names: Sequence[str]) -> str:
    return f"by {' × '.join(names)} alone" if names else "overall"
