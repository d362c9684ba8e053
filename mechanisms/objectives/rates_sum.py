"""δ of a weighted sum of rates as one object, which walks and sums its steps by runs.

A general weighted sum computes δ(t) for one t. A dampened score of a rate takes up to as many steps
as there are records, which would be too slow.
"""

from __future__ import annotations

import numpy as np

from mechanisms.model.sensitivity import SensitivityFunction
from mechanisms.objectives.sum_sensitivity import SumSensitivity
from mechanisms.utilities.rate_sensitivity import RateSensitivity


def in_one_piece(sums: SumSensitivity) -> SensitivityFunction:
    """The same δ if all members are single rates; otherwise ``sums`` itself."""
    members = [
        (part, member) for group in sums.groups for part, inside in enumerate(group)
        for member in inside
    ]  # fmt: skip
    rates = [member.delta for _, member in members if isinstance(member.delta, RateSensitivity)]
    # One group: its parts exclude one another. Several groups: each has one part, and they add up.
    exclusive_or_added = len(sums.groups) == 1 or all(len(group) == 1 for group in sums.groups)
    alone = all(len(part) == 1 for group in sums.groups for part in group)
    if len(rates) < len(members) or not (exclusive_or_added and alone):
        return sums
    rows = [
        (member.factor, rate.members[0, 1], member.cap, part)
        for (part, member), rate in zip(members, rates, strict=True)
    ]
    return RateSensitivity(
        hits=np.concatenate([rate.hits for rate in rates]),
        totals=np.concatenate([rate.totals for rate in rates]),
        members=np.array(rows, dtype=np.int64),
        replace=rates[0].replace,
        cap=sums.cap,
        horizon=sums.horizon,
    )
