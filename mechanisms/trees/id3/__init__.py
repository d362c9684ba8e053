"""Private ID3: a tree grown from noisy counts and privately selected splits."""

from mechanisms.trees.id3.budget import Budget
from mechanisms.trees.id3.grow import Id3, grow

__all__ = ["Budget", "Id3", "grow"]
