"""Settings of the operator, the OpenID provider, and roles."""
