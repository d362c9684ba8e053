"""Who is asking: callers, tokens and the signing keys of the OpenID provider."""
