"""The fixture of users with a browser."""

from tests.support.browser import sign_in

__all__ = ["sign_in"]
