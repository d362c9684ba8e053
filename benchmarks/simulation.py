"""Where simulations take their random words from: of benchmarks alone, never of the service.

A process that is given a seed repeats its draws; any other draws as the service does. The service
has no such door: there a mechanism gets ``SystemRandomness`` and nothing else.
"""

from mechanisms.model.randomness import Randomness
from mechanisms.noise.keystream import SystemRandomness
from tests.support.randomness import SeededRandomness

_source: Randomness = SystemRandomness()


def randomness() -> Randomness:
    """The source of this process."""
    return _source


def seed(number: int) -> None:
    """From now on this process repeats the draws of this seed."""
    global _source
    _source = SeededRandomness(number)
