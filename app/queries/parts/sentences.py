"""Pieces of the English question that describes a query, and safe texts for drawings."""

from collections.abc import Iterable

from mechanisms.model.domains import Dataset, TableDomain

#: The most items of a list that a sentence names. ``listing`` cuts longer lists, so that the
#: sentence stays readable.
MOST_ITEMS = 5


def version_of(dataset: Dataset, version: int) -> str:
    """Returns the dataset and its version as text, such as "github version 3".

    Where rows are those of persons, numbers and their intervals speak of kept rows; it says so.
    """
    text = f"{dataset.name} version {version}"
    if not isinstance(dataset.domain, TableDomain) or dataset.domain.person is None:
        return text
    return (
        f"{text} (which keeps at most {counted(dataset.records_per_person, 'row')} of each person)"
    )


def listing(items: Iterable[str], last: str = "and") -> str:
    """Joins at least one item: "a", "a and b", "a, b and c", "a, b, c, d, e and 95 others"."""
    names = list(items)
    if len(names) > MOST_ITEMS + 1:
        names = [*names[:MOST_ITEMS], f"{len(names) - MOST_ITEMS} others"]
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def number_text(value: float) -> str:
    """Writes a number with all its digits, and a whole one without a decimal point."""
    return str(value).removesuffix(".0")


def words(name: str) -> str:
    """Writes a name as words: "egocentric_density" becomes "egocentric density"."""
    return name.replace("_", " ")


def printable(text: str, longest: int | None = None) -> str:
    """Replaces line breaks and control characters, which XML forbids, and cuts to ``longest``."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return clean if longest is None or len(clean) <= longest else clean[: longest - 1] + "…"


def counted(count: int, noun: str) -> str:
    """Returns the number with its noun, such as "1 tree" or "3 trees"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
