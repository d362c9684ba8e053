"""People, their roles and their keys, as clients send and see them."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from app.config.roles import Role
from app.contract.models import Body, Name, Reply
from app.contract.times import Moment

SortedRoles = Annotated[list[str], BeforeValidator(sorted)]
Roles = Annotated[tuple[Role, ...], Field(min_length=1, max_length=4)]


class UserIn(Body):
    """A new user; the reply holds its first key, which is shown only there."""

    name: Name
    roles: Roles


class UserChange(Body):
    """What changes of a user; what is left out stays."""

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
    """A key, shown this once."""

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
