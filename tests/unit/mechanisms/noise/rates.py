"""The rates that samplers are tested at: the corners of the range and its middle."""

from __future__ import annotations

from mechanisms.noise.rate import Rate

NANO = 10**9
#: Pairs of ε, in units of 10⁻⁹, and q, the bits of the grid of scores. The rates λ = ε / 2^(q + 1)
#: lie between 2.5 and 5·10⁻¹⁶.
PAIRS = (
    (NANO, 0),
    (NANO, 6),
    (123456789, 20),
    (10 * NANO, 1),
    (1000, 30),
    (999999937, 30),
    (10**13, 30),
)
RATES = tuple(Rate.of(*pair) for pair in PAIRS)
NAMES = tuple(f"E={epsilon},q={bits}" for epsilon, bits in PAIRS)
