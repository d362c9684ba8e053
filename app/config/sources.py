"""The operator's file of sources: where records may be pulled from, and by which owners.

Addresses and passwords stay in this file. No reply, page or log line repeats them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    DirectoryPath,
    Field,
    SecretStr,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
)

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]


class _Source(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    owners: tuple[Name, ...] = Field(min_length=1)
    """The names of the owners who may list its tables, attach and pull them."""


class PostgreSQLSource(_Source):
    """A database, read as a role that may read and nothing else."""

    kind: Literal["postgresql"]
    dsn: SecretStr
    """``postgresql://role@host/database``; the password may stand in a file (``?passfile=``)."""
    statement_timeout: float = Field(default=60.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds that one read may take."""

    @field_validator("dsn")
    @classmethod
    def _is_an_address(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("the address of a source is postgresql://role@host/database")
        return value


class FolderSource(_Source):
    """A folder whose Parquet files are tables."""

    kind: Literal["parquet"]
    folder: DirectoryPath


AnySource = Annotated[PostgreSQLSource | FolderSource, Field(discriminator="kind")]
_FILE: TypeAdapter[dict[str, AnySource]] = TypeAdapter(dict[Name, AnySource])


def read_sources(file: Path) -> dict[str, AnySource]:
    """The sources of a TOML file, by name. Raises: ValueError, which quotes no value; OSError."""
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file}: {error}") from None
    try:
        return _FILE.validate_python(content)
    except ValidationError as error:
        reasons = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise ValueError(f"{file}: {reasons}") from None
