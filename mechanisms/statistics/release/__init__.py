"""The mechanisms of statistics by name."""

from mechanisms.statistics.release.exponential import ExponentialQuantile
from mechanisms.statistics.release.ladder import Ladder
from mechanisms.statistics.release.laplace import Laplace
from mechanisms.statistics.release.mechanism import Mechanism
from mechanisms.statistics.release.noisy_local import NoisyLocalSensitivity
from mechanisms.statistics.release.smooth import LargestLocalSensitivities, SmoothSensitivity

__all__ = ["MECHANISMS", "Mechanism"]

_ALL: tuple[Mechanism, ...] = (
    Laplace(),
    ExponentialQuantile(),
    SmoothSensitivity(),
    LargestLocalSensitivities(),
    NoisyLocalSensitivity(),
    Ladder(),
)
MECHANISMS: dict[str, Mechanism] = {mechanism.name: mechanism for mechanism in _ALL}
