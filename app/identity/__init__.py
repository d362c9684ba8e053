"""Identity of callers: callers, access tokens, and the signing keys of the OpenID provider."""
