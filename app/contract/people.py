"""People, their roles and their keys, as clients send and see them."""

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from app.config.roles import Role
from app.contract.amounts import Delta, LimitEpsilon
from app.contract.budgets import AccountBalance
from app.contract.models import Body, Name, NewName, Reply
from app.contract.times import Moment, MomentIn

SortedRoles = Annotated[list[str], BeforeValidator(sorted)]
Roles = Annotated[tuple[Role, ...], Field(min_length=1, max_length=4)]


class UserIn(Body):
    """A new user. The reply has the first key of the user, which no other reply shows."""

    name: NewName
    roles: Roles


class UserChange(Body):
    """A change of a user. A field that is left out does not change."""

    roles: Roles | None = None
    disabled: bool | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.roles is None and self.disabled is None:
            raise ValueError("at least one of roles and disabled is required")
        return self


class Me(Reply):
    name: str
    roles: SortedRoles


class UserOut(Me):
    disabled: bool
    created: Moment = Field(validation_alias="created_us")


#: The most datasets that a key may be restricted to by name.
MAX_KEY_DATASETS = 1000
DatasetNames = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_KEY_DATASETS)]
KEY_EXAMPLES: dict[str, Any] = {
    "without restrictions": {"value": {}},
    "for a notebook": {
        "value": {"epsilon": "0.5", "until": "2100-01-01T00:00:00Z", "datasets": ["people"]}
    },
}


class KeyIn(Body):
    """The restrictions of a new key. A key with ``epsilon`` has an account of its own.

    Its queries are charged to this account and to those of its user. From ``until`` on it is
    refused. It may query only the ``datasets``, and sees no others.
    """

    epsilon: LimitEpsilon | None = None
    delta: Delta | None = None
    until: MomentIn | None = None
    datasets: DatasetNames | None = None

    @model_validator(mode="after")
    def _limit(self) -> Self:
        if self.delta is not None and self.epsilon is None:
            raise ValueError("delta needs epsilon")
        return self


class KeyOut(Reply):
    """A new key with its id. The service shows the key only in this reply."""

    key: str
    key_id: str


class NewUser(KeyOut):
    name: str
    roles: SortedRoles


class KeyInfoOut(Reply):
    """A key without its secret. ``until``, ``datasets`` and ``budget`` are null if it has none.

    ``budget``: the account of the key itself.
    """

    key_id: str
    created: Moment = Field(validation_alias="created_us")
    last_used: Moment | None = Field(validation_alias="last_used_us")
    revoked: bool
    until: Moment | None = None
    datasets: list[str] | None = None
    budget: AccountBalance | None = None

    @property
    def is_restricted(self) -> bool:
        return (self.until, self.datasets, self.budget) != (None,) * 3

    @property
    def is_over(self) -> bool:
        """True if the key's last moment has passed."""
        return self.until is not None and self.until <= datetime.now(UTC)
