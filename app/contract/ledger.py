"""Entries of the ledger and its verification as clients see them."""

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from pydantic import AliasPath, BeforeValidator, Field

from accounting.account import AccountRank
from accounting.privacy_loss import format_units
from app.contract.models import Reply
from app.contract.times import Moment

EntryKind = Literal["genesis", "charge", "release", "limit_change", "freeze", "unfreeze"]
#: For each rank (kind) of account in the ledger, the name by which clients see it.
ACCOUNTS = {
    AccountRank.ANALYST_ON_DATASET: "analyst",
    AccountRank.ANALYST: "analyst_total",
    AccountRank.DATASET: "cap",
    AccountRank.KEY: "key",
}
EpsilonOrNone = Annotated[
    str | None,
    BeforeValidator(lambda nano: None if nano is None else format_units(nano, 9)),
]
Delta = Annotated[str, BeforeValidator(partial(format_units, digits=18))]
Rho = Annotated[str, BeforeValidator(partial(format_units, digits=15))]
Hex = Annotated[str, BeforeValidator(bytes.hex)]


class EntryOut(Reply):
    """One change of one account. The amounts of a charge and of a granted limit are positive.

    ``epsilon`` is null for a charge of Gaussian noise, which is counted in ρ alone.
    ``account``: ``analyst`` (on one dataset), ``analyst_total``, ``cap`` (of one dataset) or
    ``key`` (of the API key ``key``; null for the others).
    """

    account: Annotated[str, BeforeValidator(ACCOUNTS.__getitem__)] = Field(validation_alias="rank")
    seq: int
    kind: str
    dataset: str | None
    analyst: str | None
    key: Annotated[str | None, BeforeValidator(lambda id: id or None)] = Field(
        validation_alias="key_id"
    )
    actor: str
    query: Annotated[str, BeforeValidator(str)] | None = Field(validation_alias="query_id")
    epsilon: EpsilonOrNone = Field(validation_alias="epsilon_nano")
    delta: Delta = Field(validation_alias=AliasPath("amounts", 1))
    rho: Rho = Field(validation_alias=AliasPath("amounts", 2))
    at: Moment = Field(validation_alias="at_us")
    head: Hex


class BadRow(Reply):
    """A row that contradicts the rest of the ledger: its table, its key in words, the reason."""

    table: str
    row: str
    reason: str


class Part(Reply):
    """One part of a verification: when it was last finished without a bad row, if ever."""

    at: datetime | None


class Parts(Reply):
    """``chains``: hash chains and sums of the accounts. ``meaning``: every other row."""

    chains: Part
    meaning: Part


class VerificationOut(Reply):
    """The outcome of the last verification, of the accounts that the caller may see.

    ``valid``: null if the last run read only the entries after those of an earlier one; then
    ``valid_since`` is the moment of the last whole run. ``head``: one hash over the heads of these
    accounts. ``first_bad`` names the row to those whom it concerns, and to auditors.
    """

    valid: bool | None
    valid_since: datetime | None
    parts: Parts
    accounts: int
    entries: int
    head: Hex
    first_bad: BadRow | None
