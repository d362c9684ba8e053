"""Texts that pages and drawings show."""

from __future__ import annotations


def words(name: str) -> str:
    """A name of the contract as words: "egocentric_density" is "egocentric density"."""
    return name.replace("_", " ")


def printable(text: str, longest: int | None = None) -> str:
    """The text without line breaks and control characters, which XML lacks; cut to ``longest``."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return clean if longest is None or len(clean) <= longest else clean[: longest - 1] + "…"
