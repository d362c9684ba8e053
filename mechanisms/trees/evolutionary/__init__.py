"""Private evolutionary search of decision trees: public proposals, private selection."""

from mechanisms.trees.evolutionary.search import Search, search

__all__ = ["Search", "search"]
