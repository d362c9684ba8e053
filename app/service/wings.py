"""Loads the optional parts of the service by name, so that no other module imports them.

``storage.s3`` needs s3fs; ``app.cluster`` and ``storage.cluster`` need dask. Only
requirements-cluster.lock has these libraries.
"""

from importlib import import_module
from typing import Any

MISSING = (
    "{what} needs more packages: "
    "pip install --no-deps --require-hashes -r requirements-cluster.lock"
)


def wing(module: str, what: str) -> Any:
    """The module of an optional part. Raises: SystemExit if its libraries are not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise SystemExit(MISSING.format(what=what)) from None


def store(module: str) -> Any:
    """A module of ``storage.s3``."""
    return wing(f"storage.s3.{module}", "a store of prepared records")


def cluster(module: str) -> Any:
    """A module of ``app.cluster``."""
    return wing(f"app.cluster.{module}", "a cluster")
