"""The version of the client; it speaks version 1 of the HTTP contract."""

__version__ = "0.1.0"
