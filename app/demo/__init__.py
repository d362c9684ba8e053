"""The demonstration ``./run demo``: a session of all roles with a temporary real service."""
