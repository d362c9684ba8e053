"""People, their roles and their keys, as clients send and see them."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from app.config.roles import Role
from app.contract.models import Body, NewName, Reply
from app.contract.times import Moment

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


class KeyOut(Reply):
    """A new key with its id. The service shows the key only in this reply."""

    key: str
    key_id: str


class NewUser(KeyOut):
    name: str
    roles: SortedRoles


class KeyInfoOut(Reply):
    key_id: str
    created: Moment = Field(validation_alias="created_us")
    last_used: Moment | None = Field(validation_alias="last_used_us")
    revoked: bool
