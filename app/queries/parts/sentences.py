"""Pieces of the sentence that says what a query asks, and texts that a drawing can show."""

from collections.abc import Iterable

from mechanisms.model.domains import Dataset

#: A longer list is cut, so that a sentence stays one.
MOST_ITEMS = 5


def version_of(dataset: Dataset, version: int) -> str:
    """The dataset and its version: "github (version 3)"."""
    return f"{dataset.name} (version {version})"


def listing(items: Iterable[str], last: str = "and") -> str:
    """ "a", "a and b", "a, b and c", "a, b, c, d, e and 95 others"; there is at least one."""
    names = list(items)
    if len(names) > MOST_ITEMS + 1:
        names = [*names[:MOST_ITEMS], f"{len(names) - MOST_ITEMS} others"]
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def words(name: str) -> str:
    """A name of the contract as words: "egocentric_density" is "egocentric density"."""
    return name.replace("_", " ")


def printable(text: str, longest: int | None = None) -> str:
    """The text without line breaks and control characters, which XML lacks; cut to ``longest``."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return clean if longest is None or len(clean) <= longest else clean[: longest - 1] + "…"


def counted(count: int, noun: str) -> str:
    """ "1 tree", "3 trees"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
