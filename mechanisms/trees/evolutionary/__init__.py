"""Private evolutionary search of decision trees: proposals in public, selection in private."""

from __future__ import annotations

from mechanisms.trees.evolutionary.search import Search, search

__all__ = ["Search", "search"]
