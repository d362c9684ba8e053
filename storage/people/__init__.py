"""Users, roles, keys, sessions and identities."""
