"""The version of the client, which uses version 1 of the HTTP API."""

__version__ = "0.1.0"
