"""Private evolutionary search of decision trees: public proposals, private selection."""

from __future__ import annotations

from mechanisms.trees.evolutionary.search import Search, search

__all__ = ["Search", "search"]
