"""What a mechanism may lose on one record, so that a group of records loses no more than it should.

Changing k records is k single changes in a row. Write ε₀, δ₀ for the loss on a single change:

    P(M(x₀) ∈ S) ≤ e^ε₀ P(M(x₁) ∈ S) + δ₀ ≤ e^2ε₀ P(M(x₂) ∈ S) + (1 + e^ε₀) δ₀ ≤ …
                 ≤ e^kε₀ P(M(x_k) ∈ S) + (1 + e^ε₀ + … + e^(k−1)ε₀) δ₀,

by induction on k, each step applying the definition to M(xᵢ) and M(xᵢ₊₁). So (ε₀, δ₀) on one record
is (kε₀, δ₀ Σ e^iε₀) on k of them (Dwork and Roth 2014, Theorem 2.2 and its proof for δ > 0). Shares
are rounded down and what they add up to is rounded up: decimal arithmetic that only errs upwards.
"""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from accounting.privacy_loss import NANO, PrivacyLoss

#: Digits carried: the sum of a million terms still has more than the 18 that δ holds.
DIGITS = 60


def member_loss(group: PrivacyLoss, members: int) -> PrivacyLoss:
    """The largest (ε₀, δ₀) in whole units under which a group of ``members`` loses ≤ ``group``.

    Either part may be 0: nothing is left then. Raises: ValueError for no members.
    """
    if members < 1:
        raise ValueError(f"a group has at least one member, got {members}")
    epsilon = group.epsilon_nano // members
    if group.delta_atto == 0 or members == 1:
        return PrivacyLoss(epsilon, group.delta_atto)
    down = _context(ROUND_FLOOR)
    share = down.divide(Decimal(group.delta_atto), geometric_sum(epsilon, members))
    return PrivacyLoss(epsilon, int(share.to_integral_value(ROUND_FLOOR)))


def group_loss(member: PrivacyLoss, members: int) -> PrivacyLoss:
    """What a group of ``members`` loses at most to a mechanism of this loss, rounded up."""
    if members < 1:
        raise ValueError(f"a group has at least one member, got {members}")
    if member.delta_atto == 0 or members == 1:
        return PrivacyLoss(member.epsilon_nano * members, member.delta_atto)
    up = _context(ROUND_CEILING)
    delta = up.multiply(Decimal(member.delta_atto), geometric_sum(member.epsilon_nano, members))
    whole = int(delta.to_integral_value(ROUND_CEILING))
    return PrivacyLoss(member.epsilon_nano * members, whole)


def geometric_sum(epsilon_nano: int, members: int) -> Decimal:
    """1 + e^ε + … + e^((members − 1) ε), at least, and above by less than a part in 10⁵⁰.

    By doubling: S(2n) = S(n) (1 + rⁿ) and S(n + 1) = 1 + r S(n). Every operand is positive, so
    rounding each operation up keeps the result an upper bound.
    """
    up = _context(ROUND_CEILING)
    # Decimal's exp is correctly rounded to the nearest, so the next number up is a bound.
    nearest = up.exp(up.divide(Decimal(epsilon_nano), Decimal(NANO)))
    ratio = up.next_plus(nearest) if epsilon_nano else Decimal(1)
    total, power = Decimal(0), Decimal(1)  # S(n) and rⁿ for the n of the bits read so far
    for bit in bin(members)[2:]:
        total = up.multiply(total, up.add(Decimal(1), power))
        power = up.multiply(power, power)
        if bit == "1":
            total = up.add(Decimal(1), up.multiply(ratio, total))
            power = up.multiply(power, ratio)
    return total


def _context(rounding: str) -> Context:
    return Context(prec=DIGITS, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN)
