"""Moments as clients see them: UTC, ISO 8601, from microseconds of the database's clock."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(us: int) -> datetime:
    """The moment ``us`` microseconds after 1970, exactly."""
    return EPOCH + timedelta(microseconds=us)


def microseconds(at: datetime) -> int:
    """Microseconds from 1970 to a moment with a time zone, exactly."""
    return (at - EPOCH) // timedelta(microseconds=1)


def in_utc(at: datetime) -> datetime:
    """The same moment in UTC. Raises: ValueError beyond the year 9999."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is beyond the year 9999 in UTC") from None


#: A moment in a body: a date and time with a time zone, which becomes UTC.
MomentIn = Annotated[AwareDatetime, AfterValidator(in_utc)]

#: A date and time that a model accepts as microseconds since 1970, as the database stores it.
Moment = Annotated[datetime, BeforeValidator(moment)]
