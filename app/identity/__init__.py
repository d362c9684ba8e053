"""Who is asking: keys, tokens and the signing keys of the OpenID provider."""
