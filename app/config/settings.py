"""The settings of the service, read from environment variables with the prefix ``PURSE_``."""

import os
import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Self
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

from app.config.openid import (
    DEFAULT_ROLES,
    LOOPBACK_HOSTS,
    Algorithm,
    OpenID,
    OpenIDClient,
    is_safe,
)
from app.config.roles import Role
from app.config.webhook import WebhookTarget, target_of

MEGABYTE = 2**20
LEAST_QUERY_MEMORY = 64 * MEGABYTE
Network = IPv4Network | IPv6Network

#: A store of records is addressed as ``s3://``, a bucket, and an optional prefix within the bucket.
STORE = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9][A-Za-z0-9._-]*)*/?")


#: The settings that the journal records, because they decide who gets access, and how much the time
#: of an answer may reveal.
STATED = {
    *("release_interval", "opening_interval", "query_limit", "lease"),
    *("session_lifetime", "rate_limit"),
    *("oidc_issuer", "oidc_audience", "oidc_jwks_url", "oidc_algorithms"),
    *("oidc_roles_claim", "oidc_roles", "oidc_client_id", "public_url"),
}


class Settings(BaseSettings):
    """All values that may differ between installations. No value depends on records."""

    model_config = SettingsConfigDict(env_prefix="PURSE_", frozen=True, extra="ignore")

    data: Path = Path("data")
    """Folder of the database, the prepared records and the first admin's key."""
    database_url: str | None = Field(
        default=None,
        # Tests and the command line pass the value to the constructor under the field's own name,
        # so this comes first. The two other names are those of environment variables.
        validation_alias=AliasChoices("database_url", "PURSE_DATABASE_URL", "DATABASE_URL"),
    )
    """URL of the database of the ledger; SQLite in the data folder when unset."""
    database_password: SecretStr | None = None
    """Password for ``database_url``, which must then contain a user and no password."""
    secrets: DirectoryPath | None = None
    """Folder of files that replace variables, each named like one: ``purse_metrics_token``."""
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    processes: int = Field(default=1, ge=1, le=64)
    """Processes that serve one port on this machine, with one database and one data folder."""

    proxies: Annotated[tuple[Network, ...], NoDecode] = ()
    """Addresses or networks, separated by commas, behind which many clients share an address."""
    connections: int | None = Field(default=None, ge=1)
    """The most open connections; by the limit of open files, and at most 2048, when unset."""
    connections_per_address: int | None = Field(default=None, ge=1)
    """The most open connections of one address but a proxy; half of all when unset."""
    header_limit: int = Field(default=32 * 1024, ge=1024, le=MEGABYTE)
    """The most bytes of the address and the headers of one request."""
    header_timeout: float = Field(default=10.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds from a free connection to the end of the headers of its next request."""

    release_interval: float = Field(default=0.025, ge=0, le=60, allow_inf_nan=False)
    """Seconds. Answers leave at deadlines, multiples of it after their begin; 0 disables them."""
    opening_interval: float = Field(default=5.0, ge=0, le=60, allow_inf_nan=False)
    """Seconds between searches for versions to open, which become readable at its multiples."""
    workers: int | None = Field(default=None, ge=1, le=1024)
    """Threads that run kernels; one per processor when unset."""
    lease: float = Field(default=60.0, ge=1, le=86_400, allow_inf_nan=False)
    """Seconds after a crash until a retry with the same idempotency key runs the query again."""

    heads: Path | None = None
    """File of published heads, best on another disk; ``heads.log`` in the data folder if unset."""
    heads_copy: Path | None = None
    """Second file of published heads, on another disk or machine than the first; none if unset."""
    heads_command: str | None = None
    """Program that gets each published line on its standard input, with its arguments; no shell."""
    heads_interval: float = Field(default=5.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds between publications of heads; a rollback within this time may go undetected."""

    verify_interval: float = Field(default=3600.0, gt=0, le=86_400, allow_inf_nan=False)
    """Seconds between two verifications of the new entries that nobody requested."""
    verify_whole: float = Field(default=86_400.0, gt=0, le=31_536_000, allow_inf_nan=False)
    """Seconds after which such a verification reads the whole ledger again."""

    in_flight_per_analyst: int = Field(default=256, ge=1)
    """Queries of one analyst that run, or wait for their deadline, at the same time."""
    in_flight_total: int = Field(default=1024, ge=1)
    """The same for all analysts; one with less than an equal share of it is still admitted."""
    rate_limit: str | None = "180000/minute"
    """The most requests per key, as a number and a window such as ``100/second``."""
    body_timeout: float = Field(default=60.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds that a body may take to arrive; for uploads, seconds between two chunks."""
    query_limit: float = Field(default=60.0, gt=0, le=86_400, allow_inf_nan=False)
    """The most seconds that the public worst case of a query may take; more is refused."""

    query_memory: ByteSize = Field(default=ByteSize(4 * 1024 * MEGABYTE), ge=LEAST_QUERY_MEMORY)
    """Memory for all queries that run at the same time; a query beyond it waits for others."""
    table_cells: int = Field(default=100_000, ge=1, le=10_000_000)
    """The most cells of one table; the bins of its quantiles divide each of them further."""

    upload_limit: int = Field(default=1024 * MEGABYTE, ge=1)
    """The most bytes of one upload as it arrives, before decompression."""
    decompressed_limit: int = Field(default=8 * 1024 * MEGABYTE, ge=1)
    """The most bytes of one upload after decompression."""
    preparation_limit: int = Field(default=4 * 10**9, ge=1)
    """The most steps of one preparation. This public bound limits which records are possible."""
    memory_limit: ByteSize = Field(default=ByteSize(2 * 1024 * MEGABYTE), ge=64 * MEGABYTE)
    """Memory for one preparation, such as ``2GB``; mapped files do not count."""
    upload_wait: float = Field(default=5.0, ge=0, le=300, allow_inf_nan=False)
    """Seconds an upload waits for its preparation before it answers 202."""

    store: str | None = None
    """S3 store of prepared records, ``s3://bucket/prefix``; the data folder when unset."""
    store_endpoint: str | None = None
    """Address of the store, ``https://host:port``; that of Amazon S3 when unset."""
    store_key: SecretStr | None = None
    """Access key of the store; when unset, the S3 library looks for one by its own rules."""
    store_secret: SecretStr | None = None
    """Secret of the access key ``store_key``."""
    store_cache: ByteSize = Field(default=ByteSize(20 * 1024 * MEGABYTE), ge=MEGABYTE)
    """The most bytes of files from the store that are cached on this disk."""

    cluster: str | None = None
    """Scheduler, ``tls://host:port``, whose workers run large kernels; no cluster when unset."""
    cluster_ca: FilePath | None = None
    """File of the authority that signed every certificate of the cluster."""
    cluster_cert: FilePath | None = None
    """File of this process's certificate."""
    cluster_key: FilePath | None = None
    """File of the private key for ``cluster_cert``."""
    cluster_from: int = Field(default=2 * 10**9, ge=0)
    """The least work that runs on the cluster, in steps of about one nanosecond."""

    sources: FilePath | None = None
    """TOML file that names sources of records and the owners who may use them; none if unset."""

    webhook_url: SecretStr | None = None
    """Address to which notices of all users are sent, over https; none if unset."""
    webhook_secret: SecretStr | None = None
    """Secret that signs them: ``whsec_`` and 24 to 64 bytes in base64 (Standard Webhooks)."""

    session_lifetime: float = Field(default=43_200.0, ge=60, le=2_592_000, allow_inf_nan=False)
    """Seconds after which people at the dashboard sign in again."""

    oidc_issuer: str | None = Field(default=None, min_length=1, max_length=1000)
    """Issuer URL of the OpenID provider whose access tokens are accepted; none when unset."""
    oidc_audience: str | None = Field(default=None, min_length=1, max_length=1000)
    """The name of this service at the provider, which the audience of a token must contain."""
    oidc_jwks_url: str | None = None
    """URL of the keys of the provider; read from the provider's metadata when unset."""
    oidc_algorithms: Annotated[tuple[Algorithm, ...], NoDecode] = Field(("RS256",), min_length=1)
    """Accepted signature algorithms, separated by commas."""
    oidc_roles_claim: str = Field(default="roles", min_length=1, max_length=200)
    """The claim that lists roles; ``realm_access.roles`` names a claim within a claim."""
    oidc_roles: dict[str, Role] = dict(DEFAULT_ROLES)
    """The role here for each role name of the provider."""

    oidc_client_id: str | None = Field(default=None, min_length=1, max_length=1000)
    """The id of this service at the provider, for signing in at the dashboard; off when unset."""
    oidc_client_secret: SecretStr | None = None
    """The secret of ``oidc_client_id``; a client without a secret relies on PKCE alone."""
    public_url: str | None = None
    """The address of this service in browsers, such as ``https://purse.example``."""

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
        """Arguments override the environment, which overrides the files in ``secrets``."""
        del dotenv_settings, file_secret_settings
        folder = init_settings().get("secrets") or env_settings().get("secrets")
        if not folder or not Path(folder).is_dir():
            # The setting ``secrets`` is unset, or it names no folder. Its validator refuses such a
            # name later.
            return init_settings, env_settings
        files = SecretsSettingsSource(settings_cls, secrets_dir=folder)
        return init_settings, env_settings, files

    @field_validator(
        *("metrics_token", "database_password", "store_key", "store_secret"),
        *("oidc_client_secret", "webhook_url", "webhook_secret"),
    )
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

    @field_validator("oidc_algorithms", "proxies", mode="before")
    @classmethod
    def _separated(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

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

    @model_validator(mode="after")
    def _has_a_webhook(self) -> Self:
        if (self.webhook_url is None) != (self.webhook_secret is None):
            raise ValueError("a webhook and its secret go together")
        self.webhook()
        return self

    @field_validator("public_url")
    @classmethod
    def _is_a_site(cls, value: str | None) -> str | None:
        if not value:
            return None
        parsed = urlsplit(value)
        if not is_safe(value) or value != f"{parsed.scheme}://{parsed.netloc}" or "@" in value:
            raise ValueError("the public address is https://host, without a path")
        return value

    @model_validator(mode="after")
    def _is_a_client(self) -> Self:
        if self.oidc_client_id and not (self.oidc_issuer and self.public_url):
            raise ValueError("a client id goes with an issuer and the public address")
        if self.oidc_client_secret and not self.oidc_client_id:
            raise ValueError("a client secret goes with a client id")
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
        """The files of the authority, the certificate and the private key."""
        return self.cluster_ca, self.cluster_cert, self.cluster_key

    def stated(self) -> dict[str, Any]:
        """The settings that the journal states: who may come in, and what instants may reveal."""
        return self.model_dump(mode="json", include=STATED)

    def openid(self) -> OpenID | None:
        """The configured OpenID provider, or None."""
        if self.oidc_issuer is None or self.oidc_audience is None:
            return None
        return OpenID(
            self.oidc_issuer,
            self.oidc_audience,
            self.oidc_jwks_url,
            self.oidc_algorithms,
            self.oidc_roles_claim,
            self.oidc_roles,
            self._openid_client(),
        )

    def _openid_client(self) -> OpenIDClient | None:
        if self.oidc_client_id is None or self.public_url is None:
            return None
        secret = self.oidc_client_secret
        return OpenIDClient(
            self.oidc_client_id,
            None if secret is None else secret.get_secret_value(),
            self.public_url,
        )

    def webhook(self) -> WebhookTarget | None:
        """The receiver of notices, or None."""
        if self.webhook_url is None or self.webhook_secret is None:
            return None
        return target_of(
            self.webhook_url.get_secret_value(), self.webhook_secret.get_secret_value()
        )

    def kernel_threads(self) -> int:
        """The number of threads that run kernels."""
        return self.workers or os.cpu_count() or 1

    def slots(self) -> int:
        """The most heavy queries that run at the same time in one process, by its own settings.

        Of several processes each has a share of the slots that one process alone would have.
        """
        threads = self.kernel_threads() * self.processes
        # Danger: heavy queries that share a processor delay each other by tens of milliseconds at
        # times, and a short one would miss its deadline. A slot is the right to run one heavy
        # query. So two processors have two slots. A single processor has two slots as well, so that
        # short queries need not wait for a long one.
        whole = 2 if threads <= 2 else 3 if threads <= 4 else 4
        return max(1, whole // self.processes)

    def of_each_process(self) -> Self:
        """These settings with the share of the machine that each of the processes may take."""

        def share(whole: int, least: int = 1) -> int:
            return max(least, whole // self.processes)

        shares = {
            "workers": share(self.kernel_threads()),
            "query_memory": ByteSize(share(self.query_memory, LEAST_QUERY_MEMORY)),
            "in_flight_per_analyst": share(self.in_flight_per_analyst),
            "in_flight_total": share(self.in_flight_total),
        }
        return self.model_copy(update=shares if self.processes > 1 else {})

    def heads_file(self) -> Path:
        """The absolute path of the file of published heads."""
        return (self.heads or self.data / "heads.log").absolute()

    def heads_copy_file(self) -> Path | None:
        """The absolute path of the second file of published heads, None if there is none."""
        return None if self.heads_copy is None else self.heads_copy.absolute()

    def url(self) -> str:
        """The database URL, with the password if one is set."""
        if self.database_url and self.database_password:
            user, _, rest = self.database_url.rpartition("@")
            return f"{user}:{quote(self.database_password.get_secret_value(), safe='')}@{rest}"
        if self.database_url:
            return self.database_url
        return f"sqlite:///{(self.data / 'privypurse.db').absolute()}"

    @property
    def bootstrap_key_file(self) -> Path:
        """The file to which the first start writes the key of the first admin."""
        return self.data / "bootstrap-admin.key"
