"""Initial centres: possible records, chosen by the analyst or drawn from the public domain."""

from collections.abc import Mapping, Sequence
from math import prod

from mechanisms.model.domains import Attribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.randomness import Randomness
from mechanisms.noise.uniform import uniform

#: A record by its level of every attribute.
DomainRecord = tuple[int, ...]


def centre_levels(
    attributes: Sequence[Attribute], centres: Sequence[Mapping[str, str]]
) -> list[DomainRecord]:
    """The levels of each requested centre.

    Raises: UnsupportedQuery when a centre is not of the public domain.
    """
    names = {attribute.name for attribute in attributes}
    records = []
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
        records.append(tuple(levels))
    return records


def check_enough(attributes: Sequence[Attribute], clusters: int) -> None:
    """Raise UnsupportedQuery unless there are as many different records as clusters."""
    if prod(len(attribute.levels) for attribute in attributes) < clusters:
        raise UnsupportedQuery("the public domain has fewer different records than clusters")


def drawn_centres(
    attributes: Sequence[Attribute], clusters: int, randomness: Randomness
) -> list[DomainRecord]:
    """``clusters`` different records, uniform over the public domain; no private record is read."""
    check_enough(attributes, clusters)
    source = randomness.stream()
    records: dict[DomainRecord, None] = {}
    while len(records) < clusters:
        records[tuple(uniform(len(a.levels), source) for a in attributes)] = None
    return list(records)
