"""The catalogue of utilities, by which candidates may be selected."""

from mechanisms.utilities.core_number import CoreNumber
from mechanisms.utilities.count import Count
from mechanisms.utilities.degree import Degree
from mechanisms.utilities.egocentric_betweenness import EgocentricBetweenness
from mechanisms.utilities.egocentric_density import EgocentricDensity
from mechanisms.utilities.gini import Gini
from mechanisms.utilities.h_index import HIndex
from mechanisms.utilities.information_gain import InformationGain, MutualInformation
from mechanisms.utilities.max import Max
from mechanisms.utilities.tree_hits import TrueNegatives, TruePositives
from mechanisms.utilities.tree_rates import TrueNegativeRate, TruePositiveRate
from mechanisms.utilities.utility import Utility

_CATALOGUE: tuple[Utility, ...] = (
    Degree(),
    EgocentricDensity(),
    EgocentricBetweenness(),
    CoreNumber(),
    HIndex(),
    InformationGain(),
    Gini(),
    Max(),
    MutualInformation(),
    Count(),
    TruePositiveRate(),
    TrueNegativeRate(),
    TruePositives(),
    TrueNegatives(),
)
UTILITIES: dict[str, Utility] = {utility.name: utility for utility in _CATALOGUE}
