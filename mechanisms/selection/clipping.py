"""The public rule of clipped scores: where noise hides small scores anyway, count them alike.

Candidates at the clip are ties. So the rule clips only below the ε at which a candidate that scores
the clip above all others, who score alike, would be in the set of k no more often than not.
"""

from dataclasses import dataclass
from math import floor, log

from accounting.privacy_loss import NANO
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.objectives import Objective
from mechanisms.selection.top_k import Plan, clipped_scores

#: Scores below a public threshold, the clip, are raised to it. The clip must be so high that one
#: edge of the graph moves k clipped scores together by at most 2 + 1/32 units: one unit for each
#: end of the edge, and 1/32 for all other nodes together. ``PART`` is this 32.
PART = 32


@dataclass(frozen=True)
class Clip:
    """Scores below ``units`` count as ``units``, at every ε below ``below_nano`` · 10⁻⁹."""

    units: int
    below_nano: int


def clip_for(
    dataset: Dataset, candidates: Candidates, objective: Objective, k: int, public: Plan
) -> Clip | None:
    """The least clip of 1, 2, 4, … at which k scores move together by two units and 1/32.

    Args:
        public: the plan of the k candidates by dampened scores, without a clip.

    Returns None where the objective has no clipped scores or the public degrees do not reach it.
    """
    scores = clipped_scores(objective, dataset, candidates, public.grid)
    if scores is None or min(k, public.count - k) < 2:
        return None
    one, units = public.influence.one, 1
    while (clipped := scores.influence(dataset, units, public.score_bits)) is not None:
        if PART * (clipped.spread_of(k) - 2 * one) <= one:
            return Clip(units, _below_nano(units, k, public))
        units *= 2
    return None


def _below_nano(units: int, k: int, public: Plan) -> int:
    """The ε at which e^{ε·units/ρ}·k/(n − k) reaches one, ρ the spread of unclipped scores."""
    spread = public.influence.spread_of(k) / public.influence.one
    return max(0, floor(NANO * spread * log((public.count - k) / k) / units))
