"""The selectors by name."""

from mechanisms.selection.choice import Choice, SelectorName
from mechanisms.selection.exponential import Exponential
from mechanisms.selection.noisy_vector import NoisyVector
from mechanisms.selection.permute_and_flip import PermuteAndFlip
from mechanisms.selection.selector import Draws, Selector
from mechanisms.selection.subset import Subset

__all__ = [
    "JOINT_SELECTORS",
    "LAPLACE",
    "SELECTORS",
    "SUBSET",
    "Choice",
    "Draws",
    "Selector",
    "SelectorName",
]

#: Selectors that draw one candidate after another.
SELECTORS: dict[str, Selector] = {
    selector.name: selector for selector in (PermuteAndFlip(), Exponential())
}
#: Selectors that select several candidates together. The scale of their noise follows from how far
#: one change moves all scores together.
SUBSET = Subset()
LAPLACE = NoisyVector()
JOINT_SELECTORS: dict[str, Subset | NoisyVector] = {
    selector.name: selector for selector in (SUBSET, LAPLACE)
}
