"""Moments as clients see them: UTC, ISO 8601, from microseconds of the database's clock."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(us: int) -> datetime:
    """The moment ``us`` microseconds after 1970, exactly."""
    return EPOCH + timedelta(microseconds=us)


def microseconds(at: datetime) -> int:
    """Microseconds from 1970 to a moment with a time zone, exactly."""
    return (at - EPOCH) // timedelta(microseconds=1)


#: A date and time that a model accepts as microseconds since 1970, as the database stores it.
Moment = Annotated[datetime, BeforeValidator(moment)]
