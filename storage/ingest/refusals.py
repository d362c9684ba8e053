"""Refusals of an upload, each with its place and reason. Texts never quote the content of a cell.

``Refusal`` is a place, a stable type and a message, as ``InvalidRecords`` has them.
"""

from collections.abc import Iterable
from typing import NoReturn

from storage.errors import InvalidRecords

MOST = 20
"""The most errors that an owner sees; reading stops at the first block with an error."""

Place = tuple[str | int, ...]
Refusal = tuple[Place, str, str]

WHOLE: Place = ("upload",)
"""The place of a fault in an upload as a whole."""


def refuse(place: Place, type: str, message: str) -> NoReturn:
    """Refuse the upload for one reason."""
    raise InvalidRecords([(place, type, message)])


def refuse_any(refusals: Iterable[Refusal]) -> None:
    """Refuse the upload if there is any refusal, with the first ones in the order of the file."""
    ordered = sorted(refusals, key=lambda refusal: [p for p in refusal[0] if isinstance(p, int)])
    if ordered:
        raise InvalidRecords(ordered[:MOST])
