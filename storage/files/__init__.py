"""Closed folders, mapped and growing arrays, node labels, and files that machines share."""
