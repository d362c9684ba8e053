"""HTTP in, HTTP out; the command line; where work runs."""

__version__ = "0.1.0"
