"""Initial centres: records that could be, given by the analyst or drawn from the public domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from mechanisms.model.domains import Attribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.randomness import Randomness, WordSource

#: A record by its level of every attribute.
Possible = tuple[int, ...]


def given_centres(
    attributes: Sequence[Attribute], centres: Sequence[Mapping[str, str]]
) -> list[Possible]:
    """Levels of each given centre; UnsupportedQuery when one is not of the public domain."""
    names = {attribute.name for attribute in attributes}
    found = []
    for centre in centres:
        if set(centre) != names:
            raise UnsupportedQuery(
                "an initial centre has a value of every attribute that takes part",
                supported={"attributes": sorted(names)},
            )
        levels = []
        for attribute in attributes:
            if centre[attribute.name] not in attribute.levels:
                raise UnsupportedQuery("an initial centre has a value outside the public domain")
            levels.append(attribute.levels.index(centre[attribute.name]))
        found.append(tuple(levels))
    return found


def check_enough(attributes: Sequence[Attribute], clusters: int) -> None:
    """There are as many different records as clusters."""
    if prod(len(attribute.levels) for attribute in attributes) < clusters:
        raise UnsupportedQuery("the public domain has fewer different records than clusters")


def drawn_centres(
    attributes: Sequence[Attribute], clusters: int, randomness: Randomness
) -> list[Possible]:
    """``clusters`` different records, uniform among all of the public domain: no record is read."""
    check_enough(attributes, clusters)
    source = randomness.stream()
    found: dict[Possible, None] = {}
    while len(found) < clusters:
        found[tuple(_below(len(a.levels), source) for a in attributes)] = None
    return list(found)


def _below(bound: int, source: WordSource) -> int:
    """Uniform in [0, bound): words beyond the last whole multiple are drawn again."""
    last = (1 << 64) - (1 << 64) % bound
    while True:
        word = int(source.words(1)[0])
        if word < last:
            return word % bound
