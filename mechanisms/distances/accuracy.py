"""The accuracy of a metric before it is learned: its noise, from public facts alone."""

from math import comb, ldexp, sqrt

from accounting.privacy_loss import PrivacyLoss
from mechanisms.distances.context_scores import largest_change
from mechanisms.distances.options import Context
from mechanisms.distances.plan import Plan
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.utilities.information_gain import InformationGain


def cell_noise_scale(plan: Plan, loss: PrivacyLoss) -> float:
    """The largest scale of the noise on a cell of a table, in records: σ of Gaussian noise.

    It is that of the public bound on the number of tables. Contexts that share tables need fewer
    tables, which get less noise.
    """
    noise = plan.table_noise(plan.shares(loss)[1], plan.tables)
    return sqrt(noise.square) if isinstance(noise, Deviation) else float(1 / noise.exponent())


def entropy_noise_scale(plan: Plan, loss: PrivacyLoss) -> float:
    """The scale of the noise on an entropy of ``mean_su``, in bits."""
    rate = plan.entropy_rate(plan.context_loss(plan.shares(loss)[0]))
    return ldexp(float(1 / rate.exponent()), -plan.entropy_grid().bits)


def score_below_best(plan: Plan, loss: PrivacyLoss, confidence: float) -> float:
    """A bound on how far below the best a drawn context may score, in units of the sensitivity."""
    share = plan.context_loss(plan.shares(loss)[0].shares(len(plan.targets))[0])
    if plan.options.sensitivity is Sensitivity.GLOBAL and not plan.replace:
        share = share * 2
    others = len(plan.attributes) - 1
    sets = plan.options.context is Context.MAX_DEPENDENCY
    candidates = comb(others, plan.size) if sets else others
    return plan.options.selector.accuracy(candidates, share, plan.draws, confidence)


def information_unit(plan: Plan) -> float:
    """The bits of −H(Y | X) that one unit of a score under ``global`` stands for: φ(N)/N.

    N is the public bound on rows, φ(N) the most that N·H(Y | X) changes between neighbours.
    """
    grid = InformationGain().table_grid(plan.rows)
    return ldexp(largest_change(plan.rows, grid), -grid.bits) / plan.rows
