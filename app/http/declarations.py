"""Declarations of a route about its requests, as dependencies that the route class enforces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Request
from fastapi.params import Depends as DependsMarker

from app.http.access import Declaration

JSON = "application/json"

Declared = TypeVar("Declared", bound=Declaration)


@dataclass(frozen=True)
class BodyLimit(Declaration):
    """Declares the most bytes of a body that a route reads; without it, 1 MB."""

    limit: int


def body_limit(limit: int) -> DependsMarker:
    return DependsMarker(BodyLimit(limit))


@dataclass(frozen=True)
class CountsItself(Declaration):
    """Declares that the route itself counts its requests against the rate limit of the caller."""


counts_itself = DependsMarker(CountsItself())


@dataclass(frozen=True)
class TakesRecords(Declaration):
    """Declares that a route reads or removes records.

    How long it takes depends on the records, so the metrics leave out its durations: they could
    reveal something of the records.
    """


takes_records = DependsMarker(TakesRecords())


@dataclass(frozen=True)
class Formats(Declaration):
    """Declares the media types by the values of ``?format=``; without a known value, ``other``."""

    media_types: tuple[tuple[str, str], ...]
    other: str = JSON

    def media_type(self, request: Request) -> str:
        """The media type that the request chooses, without parameters such as ``charset``."""
        choice = request.query_params.get("format")
        return dict(self.media_types).get(choice or "", self.other).partition(";")[0]


def formats(**media_types: str) -> DependsMarker:
    return DependsMarker(Formats(tuple(media_types.items())))


def sends(media_type: str) -> DependsMarker:
    """Declares a route that sends this media type alone."""
    return DependsMarker(Formats((), media_type))


def declared(dependencies: Sequence[DependsMarker], kind: type[Declared]) -> Declared | None:
    """The declaration of this class among the dependencies of a route; None without one."""
    for dependency in dependencies:
        if isinstance(dependency.dependency, kind):
            return dependency.dependency
    return None
