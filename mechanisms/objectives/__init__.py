"""Objectives: the rankings of candidates, by one utility or by several together.

A new objective is one class that implements ``Objective``, made of terms and with ``facts`` for the
catalogue, and one line in ``OBJECTIVES``.
"""

from mechanisms.objectives.objective import Term
from mechanisms.objectives.pareto import Pareto
from mechanisms.objectives.single import SingleUtility
from mechanisms.objectives.weighted_sum import ExclusiveUtility, WeightedSum
from mechanisms.utilities.utility import Objective

__all__ = [
    "OBJECTIVES",
    "ExclusiveUtility",
    "Objective",
    "Pareto",
    "SingleUtility",
    "Term",
    "WeightedSum",
]

#: The objectives by their names in queries. Each raises UnsupportedQuery if the utilities and
#: weights of the query do not fit it.
OBJECTIVES: dict[str, type[SingleUtility | WeightedSum | Pareto]] = {
    "single": SingleUtility,
    "weighted_sum": WeightedSum,
    "pareto": Pareto,
}
