"""The fixtures of a whole service in this process, and of its users."""

from tests.support.service import (
    application,
    begun,
    client,
    fast_lane,
    people,
    service,
    settings,
)

__all__ = ["application", "begun", "client", "fast_lane", "people", "service", "settings"]
