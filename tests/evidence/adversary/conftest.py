"""A whole service in this process, for faults that its machine may have."""

from tests.support.service import application, begun, fast_lane, people, service, settings

__all__ = ["application", "begun", "fast_lane", "people", "service", "settings"]
