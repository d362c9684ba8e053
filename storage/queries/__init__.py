"""The look-up that a request begins with, and the history of queries."""
