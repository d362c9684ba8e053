"""How an operator configures the service: environment variables, ``PURSE_`` before each name."""

import os
import re
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import quote, urlsplit

from limits import parse
from pydantic import (
    AliasChoices,
    ByteSize,
    DirectoryPath,
    Field,
    FilePath,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)

from app.config.openid import DEFAULT_ROLES, LOOPBACK_HOSTS, Algorithm, OpenID, is_safe
from app.config.roles import Role

MEGABYTE = 2**20

#: A bucket and, where it has other uses too, a prefix.
STORE = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9][A-Za-z0-9._-]*)*/?")


class Settings(BaseSettings):
    """Everything that may differ between two installations; nothing here depends on records."""

    model_config = SettingsConfigDict(env_prefix="PURSE_", frozen=True, extra="ignore")

    data: Path = Path("data")
    """Folder of the database, the prepared records and the first admin's key."""
    database_url: str | None = Field(
        default=None,
        # The constructor takes the field's own name too, in tests and from the command line.
        validation_alias=AliasChoices("database_url", "PURSE_DATABASE_URL", "DATABASE_URL"),
    )
    """Where the ledger lives; SQLite in the data folder when unset."""
    database_password: SecretStr | None = None
    """Put into ``database_url``, which then names a user and no password."""
    secrets: DirectoryPath | None = None
    """Folder in which a file named like a variable, ``purse_metrics_token``, stands for it."""
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)

    release_interval: float = Field(default=0.1, ge=0, le=60, allow_inf_nan=False)
    """Seconds. Answers leave at reservation + interval · 2^j; 0 switches that off, for tests."""
    workers: int | None = Field(default=None, ge=1, le=1024)
    """Threads that run kernels; one a processor when unset."""
    places: int | None = Field(default=None, ge=1, le=4096)
    """Queries that are worked on at the same time, the others wait; eight a worker when unset."""
    lease: float = Field(default=60.0, ge=1, le=86_400, allow_inf_nan=False)
    """Seconds after a crash from which on the key of a running query runs it again."""

    heads: Path | None = None
    """File of published heads, best on another disk; ``heads.log`` in the data folder if unset."""
    heads_interval: float = Field(default=5.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds between two publications: what a crash of both places may forget."""

    in_flight_per_analyst: int = Field(default=256, ge=1)
    """Queries of one analyst that run, or wait for their release instant, at the same time."""
    in_flight_total: int = Field(default=1024, ge=1)
    """The same for all analysts together."""
    rate_limit: str | None = "180000/minute"
    """Requests of one key; a number and a window such as ``100/second``."""
    body_timeout: float = Field(default=60.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds a body may take to arrive; of an upload, seconds in which nothing arrives."""
    query_limit: float = Field(default=600.0, gt=0, le=86_400, allow_inf_nan=False)
    """Seconds a query may wait for a place, then released, and work, then failed; public."""

    upload_limit: int = Field(default=1024 * MEGABYTE, ge=1)
    """Bytes of one upload as it arrives, compressed or not."""
    decompressed_limit: int = Field(default=8 * 1024 * MEGABYTE, ge=1)
    """Bytes of one upload after decompression."""
    preparation_limit: int = Field(default=4 * 10**9, ge=1)
    """Units of work one version's preparation may take; published, part of the universe."""
    memory_limit: ByteSize = Field(default=ByteSize(2 * 1024 * MEGABYTE), ge=64 * MEGABYTE)
    """Memory for one preparation, beside files that are mapped; ``2GB``, say."""
    upload_wait: float = Field(default=5.0, ge=0, le=300, allow_inf_nan=False)
    """Seconds an upload waits for its preparation before it answers 202."""

    store: str | None = None
    """An S3-compatible store of prepared records, ``s3://bucket/prefix``; else the data folder."""
    store_endpoint: str | None = None
    """Where the store is, ``https://host:port``; Amazon's when unset."""
    store_key: SecretStr | None = None
    """Access key of the store; as the tools of its kind find one when unset."""
    store_secret: SecretStr | None = None
    """Its secret."""
    store_cache: ByteSize = Field(default=ByteSize(20 * 1024 * MEGABYTE), ge=MEGABYTE)
    """Files of the store that may be kept on this disk."""

    cluster: str | None = None
    """A scheduler, ``tls://host:port``, whose workers run what is large; none when unset."""
    cluster_ca: FilePath | None = None
    """File of the authority that signed every certificate of the cluster."""
    cluster_cert: FilePath | None = None
    """File of this process's certificate."""
    cluster_key: FilePath | None = None
    """File of its key."""
    cluster_from: int = Field(default=2 * 10**9, ge=0)
    """Steps of work, nanoseconds about, from which it goes to the cluster."""

    session_lifetime: float = Field(default=43_200.0, ge=60, le=2_592_000, allow_inf_nan=False)
    """Seconds after which people at the dashboard sign in again."""

    oidc_issuer: str | None = Field(default=None, min_length=1, max_length=1000)
    """The OpenID provider whose access tokens are taken; none when unset."""
    oidc_audience: str | None = Field(default=None, min_length=1, max_length=1000)
    """What a token's audience must name: this service, as the provider knows it."""
    oidc_jwks_url: str | None = None
    """Where the provider's keys are; unset, its own description says so."""
    oidc_algorithms: Annotated[tuple[Algorithm, ...], NoDecode] = Field(("RS256",), min_length=1)
    """Signatures that are taken, separated by commas."""
    oidc_roles_claim: str = Field(default="roles", min_length=1, max_length=200)
    """Where a token lists roles; ``realm_access.roles`` is a claim within a claim."""
    oidc_roles: dict[str, Role] = dict(DEFAULT_ROLES)
    """What the provider's roles are here."""

    metrics_token: SecretStr | None = None
    """Bearer token of GET /metrics; without it the route does not exist."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What a caller says wins over the environment, and that over files of ``secrets``."""
        del dotenv_settings, file_secret_settings
        folder = init_settings().get("secrets") or env_settings().get("secrets")
        if not folder or not Path(folder).is_dir():  # Refused by its own check, or not wanted.
            return init_settings, env_settings
        files = SecretsSettingsSource(settings_cls, secrets_dir=folder)
        return init_settings, env_settings, files

    @field_validator("metrics_token", "database_password", "store_key", "store_secret")
    @classmethod
    def _empty_is_none(cls, value: SecretStr | None) -> SecretStr | None:
        return value if value and value.get_secret_value() else None

    @field_validator("rate_limit")
    @classmethod
    def _is_a_rate(cls, value: str | None) -> str | None:
        if not value:
            return None
        try:
            parse(value)
        except ValueError:
            raise ValueError("a number and a window are needed, such as 100/second") from None
        return value

    @field_validator("oidc_algorithms", mode="before")
    @classmethod
    def _separated(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        user, at, _ = (self.database_url or "").partition("://")[2].rpartition("@")
        if self.database_password is not None and (not at or ":" in user):
            raise ValueError("the password goes with an address that has a user and no password")
        return self

    @model_validator(mode="after")
    def _names_a_provider(self) -> Self:
        if (self.oidc_issuer is None) != (self.oidc_audience is None):
            raise ValueError("an issuer and an audience go together")
        if self.oidc_issuer is None:
            return self
        if not is_safe(self.oidc_jwks_url or self.oidc_issuer):
            raise ValueError("keys are fetched over https, or from this machine itself")
        return self

    @field_validator("store")
    @classmethod
    def _is_a_store(cls, value: str | None) -> str | None:
        if not value:
            return None
        if not STORE.fullmatch(value):
            raise ValueError("a store's address is s3://bucket/prefix")
        return value

    @model_validator(mode="after")
    def _is_a_safe_store(self) -> Self:
        if self.store_endpoint and not is_safe(self.store_endpoint):
            raise ValueError("a store is spoken to over https, or on this machine itself")
        if (self.store_key is None) != (self.store_secret is None):
            raise ValueError("an access key and its secret go together")
        return self

    @field_validator("cluster")
    @classmethod
    def _is_a_scheduler(cls, value: str | None) -> str | None:
        if not value:
            return None
        parsed = urlsplit(value)
        if parsed.scheme not in ("tcp", "tls") or not parsed.hostname or not parsed.port:
            raise ValueError("a scheduler's address is tls://host:port")
        if parsed.scheme == "tcp" and parsed.hostname not in LOOPBACK_HOSTS:
            raise ValueError("only a scheduler on this machine is spoken to without TLS")
        return value

    @model_validator(mode="after")
    def _has_certificates(self) -> Self:
        named = [file is not None for file in self.cluster_files()]
        if any(named) and not all(named):
            raise ValueError("an authority, a certificate and a key go together")
        if self.cluster and self.cluster.startswith("tls:") != all(named):
            raise ValueError("certificates go with tls://, and with nothing else")
        return self

    def cluster_files(self) -> tuple[Path | None, Path | None, Path | None]:
        """Authority, certificate and key."""
        return self.cluster_ca, self.cluster_cert, self.cluster_key

    def openid(self) -> OpenID | None:
        """The provider in effect."""
        if self.oidc_issuer is None or self.oidc_audience is None:
            return None
        return OpenID(
            self.oidc_issuer,
            self.oidc_audience,
            self.oidc_jwks_url,
            self.oidc_algorithms,
            self.oidc_roles_claim,
            self.oidc_roles,
        )

    def kernel_threads(self) -> int:
        """``workers`` in effect."""
        return self.workers or os.cpu_count() or 1

    def places_in_effect(self) -> int:
        """How many queries are worked on at the same time."""
        return self.places or 8 * self.kernel_threads()

    def heads_file(self) -> Path:
        """The file of published heads in effect."""
        return (self.heads or self.data / "heads.log").absolute()

    def url(self) -> str:
        """The database URL in effect."""
        if self.database_url and self.database_password:
            user, _, rest = self.database_url.rpartition("@")
            return f"{user}:{quote(self.database_password.get_secret_value(), safe='')}@{rest}"
        if self.database_url:
            return self.database_url
        return f"sqlite:///{(self.data / 'privypurse.db').absolute()}"

    @property
    def bootstrap_key_file(self) -> Path:
        """Where the first start leaves the first admin's key."""
        return self.data / "bootstrap-admin.key"
