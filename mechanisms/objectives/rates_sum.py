"""δ of a weighted sum of rates in one piece, which walks and sums its steps by runs.

A weighted sum by itself says what δ(t) is, but a dampened score of a rate takes up to as many steps
as there are records.
"""

from __future__ import annotations

import numpy as np

from mechanisms.objectives.sum_sensitivity import SumSensitivity
from mechanisms.sensitivity import SensitivityFunction
from mechanisms.utilities.rate_sensitivity import RateSensitivity


def in_one_piece(sums: SumSensitivity) -> SensitivityFunction:
    """The same δ where all members are rates of their own; ``sums`` as it is elsewhere."""
    rows, rates = [], []
    for group in sums.groups:
        # One group: its parts exclude one another. Several: each has one part, and they add up.
        if (len(sums.groups) > 1 and len(group) > 1) or any(len(part) > 1 for part in group):
            return sums
        for part, members in enumerate(group):
            for member in members:
                rate = member.delta
                if not isinstance(rate, RateSensitivity) or member.cap != rate.cap:
                    return sums
                rows.append((member.factor, rate.members[0, 1], rate.cap, part))
                rates.append(rate)
    return RateSensitivity(
        hits=np.concatenate([rate.hits for rate in rates]),
        totals=np.concatenate([rate.totals for rate in rates]),
        members=np.array(rows, dtype=np.int64),
        replace=rates[0].replace,
        cap=sums.cap,
        horizon=sums.horizon,
    )
