"""Files shared through an object store; an optional part of the service."""
