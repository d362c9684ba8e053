"""Initial centres that the analyst names: possible records of the public domain."""

from collections.abc import Mapping, Sequence
from math import prod

from mechanisms.model.domains import Attribute
from mechanisms.model.errors import UnsupportedQuery

#: A record that the public domain allows. It holds one number per attribute, the index of its value
#: in the attribute's list of values (levels).
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
