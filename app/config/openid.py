"""The trusted OpenID provider, and the roles that its tokens grant here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from app.config.roles import Role

#: Signature algorithms whose verifying key is public. HS256 is left out: its key is shared, so
#: every verifier could also sign tokens.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
#: The names of this machine itself. Only connections to these may do without TLS.
LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
DEFAULT_ROLES: Mapping[str, Role] = {
    "privypurse-admin": "admin",
    "privypurse-owner": "owner",
    "privypurse-analyst": "analyst",
    "privypurse-auditor": "auditor",
}


@dataclass(frozen=True)
class OpenIDClient:
    """This service as a client of the provider. ``site``: its own public address."""

    id: str
    secret: str | None
    site: str

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends browsers back to; it must know this address to the letter."""
        return f"{self.site}/ui/sign-in/return"

    @property
    def sign_in_page(self) -> str:
        return f"{self.site}/ui/sign-in"


@dataclass(frozen=True)
class OpenID:
    """The provider. ``roles`` maps each name in the claim ``roles_claim`` to a role here.

    ``client``: None if nobody signs in at the dashboard by it.
    """

    issuer: str
    audience: str
    jwks_url: str | None
    algorithms: tuple[Algorithm, ...]
    roles_claim: str
    roles: Mapping[str, Role]
    client: OpenIDClient | None = None


def is_safe(url: str) -> bool:
    """Whether no third party can alter replies from ``url``: it uses TLS or stays on this host."""
    try:
        parsed = urlsplit(url)
        host = parsed.hostname
    except ValueError:
        return False
    if parsed.scheme == "https":
        return bool(host)
    return parsed.scheme == "http" and host in LOOPBACK_HOSTS
