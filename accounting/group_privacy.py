"""Group privacy: the loss on one record under which a group of records keeps to its bound.

A change of k records is k single changes in a row, from x₀ to x_k. M is the mechanism, S a set of
outputs, P the probability, and (ε₀, δ₀) the loss on a single change:

    P(M(x₀) ∈ S) ≤ e^ε₀ P(M(x₁) ∈ S) + δ₀ ≤ e^2ε₀ P(M(x₂) ∈ S) + (1 + e^ε₀) δ₀ ≤ …
                 ≤ e^kε₀ P(M(x_k) ∈ S) + (1 + e^ε₀ + … + e^(k−1)ε₀) δ₀,

by induction on k; each step applies the definition to M(xᵢ) and M(xᵢ₊₁). So (ε₀, δ₀) on one record
is (kε₀, δ₀ Σ e^iε₀) on k records, with the sum over 0 ≤ i < k (Dwork and Roth 2014, Theorem 2.2 and
its proof for δ > 0). Shares are rounded down and losses up, so rounding never weakens the bound.
"""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from accounting.privacy_loss import NANO, PrivacyLoss

#: The decimal digits with which each operation is computed. They suffice for 18 exact digits of δ
#: after a sum of a million terms.
DIGITS = 60


def member_loss(group: PrivacyLoss, members: int) -> PrivacyLoss:
    """The largest loss on one record, (ε₀, δ₀), for which ``members`` records lose ≤ ``group``.

    It is in whole units, so either part may round down to 0. Raises: ValueError for no members.
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
    """The loss of a group of ``members`` records, if one record loses ``member``; rounded up."""
    if members < 1:
        raise ValueError(f"a group has at least one member, got {members}")
    if member.delta_atto == 0 or members == 1:
        return PrivacyLoss(member.epsilon_nano * members, member.delta_atto)
    up = _context(ROUND_CEILING)
    delta = up.multiply(Decimal(member.delta_atto), geometric_sum(member.epsilon_nano, members))
    whole = int(delta.to_integral_value(ROUND_CEILING))
    return PrivacyLoss(member.epsilon_nano * members, whole)


def geometric_sum(epsilon_nano: int, members: int) -> Decimal:
    """An upper bound on 1 + e^ε + … + e^((members − 1) ε); its relative error is below 10⁻⁵⁰.

    With r = e^ε and S(n) the sum of the first n terms, it doubles n: S(2n) = S(n) (1 + rⁿ) and
    S(n + 1) = 1 + r S(n). All operands are positive, so rounding up yields an upper bound.
    """
    up = _context(ROUND_CEILING)
    # The decimal exp function rounds to the nearest number, so the next larger number is an upper
    # bound.
    nearest = up.exp(up.divide(Decimal(epsilon_nano), Decimal(NANO)))
    ratio = up.next_plus(nearest) if epsilon_nano else Decimal(1)
    # Doubling reads the binary digits of the group size ``members`` from the left. After digits
    # that form the number n, ``total`` is S(n), the sum of the first n powers of r = e^ε, and
    # ``power`` is rⁿ.
    total, power = Decimal(0), Decimal(1)
    for bit in bin(members)[2:]:
        total = up.multiply(total, up.add(Decimal(1), power))
        power = up.multiply(power, power)
        if bit == "1":
            total = up.add(Decimal(1), up.multiply(ratio, total))
            power = up.multiply(power, ratio)
    return total


def _context(rounding: str) -> Context:
    return Context(prec=DIGITS, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN)
