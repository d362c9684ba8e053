"""The fixture of people with a browser."""

from tests.support.browser import sign_in

__all__ = ["sign_in"]
