"""The address to which the operator lets notices be sent."""

import base64
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from app.config.openid import is_safe


@dataclass(frozen=True)
class WebhookTarget:
    """One address, which may hold a secret itself, and the key that signs what is sent there."""

    address: str = field(repr=False)
    key: bytes = field(repr=False)


def target_of(address: str, secret: str) -> WebhookTarget:
    """Raises: ValueError, which quotes neither, unless both are usable."""
    if not is_safe(address) or "@" in urlsplit(address).netloc:
        raise ValueError("a webhook is sent over https, or to this machine, without a user")
    prefix, mark, text = secret.partition("whsec_")
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if prefix or not mark or not 24 <= len(key) <= 64:
        raise ValueError("the secret of a webhook is whsec_ and 24 to 64 bytes in base64")
    return WebhookTarget(address, key)
