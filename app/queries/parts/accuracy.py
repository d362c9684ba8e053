"""How accuracy is predicted: the probability, the target that most kinds have, the digits."""

from __future__ import annotations

#: Quotes say how accurate an answer is with this probability.
CONFIDENCE = 0.95
#: The accuracy that selections predict and may have to reach: how many steps of the sensitivity
#: the score of a selected candidate falls below the best.
SCORE_TARGET = "score_below_best"


def significant(value: float) -> float:
    """Four significant digits: predictions are bounds, not measurements."""
    return float(f"{value:.4g}")
