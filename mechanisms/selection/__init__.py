"""The selectors by name."""

from mechanisms.selection.exponential import Exponential
from mechanisms.selection.permute_and_flip import PermuteAndFlip
from mechanisms.selection.selector import Draws, Selector

__all__ = ["NOT_OFFERED", "SELECTORS", "Draws", "Selector"]

#: Selectors that are not offered, each with the reason: they equal another one or are worse.
NOT_OFFERED: dict[str, str] = {
    "laplace": (
        "The largest of scores with Laplace noise of scale 2/ε has the same privacy loss but is "
        "dominated: of two candidates it takes the one that is g below the other with probability "
        "(1 + εg/4)/2 · e^(-εg/2), permute-and-flip with 1/2 · e^(-εg/2). It is not offered."
    )
}

SELECTORS: dict[str, Selector] = {
    selector.name: selector for selector in (PermuteAndFlip(), Exponential())
}
