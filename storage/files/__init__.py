"""Closed folders, mapped and growing arrays, node labels, and the `Shared` protocol."""
