"""Jobs that other machines read; an optional part of the service."""
