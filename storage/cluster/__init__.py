"""Jobs that the workers of a cluster read; an optional part of the service."""
