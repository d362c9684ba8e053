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

#: The selectors that draw one candidate after another, by name. A selector is a private mechanism
#: that draws candidates by their scores.
SELECTORS: dict[str, Selector] = {
    selector.name: selector for selector in (PermuteAndFlip(), Exponential())
}
#: The selectors that select several candidates together, by name. The scale of their noise follows
#: from how far one change of the records moves all scores together.
SUBSET = Subset()
LAPLACE = NoisyVector()
JOINT_SELECTORS: dict[str, Subset | NoisyVector] = {
    selector.name: selector for selector in (SUBSET, LAPLACE)
}
