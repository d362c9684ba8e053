"""How a selection is made: the public choice of sensitivity, selector and draws."""

from dataclasses import dataclass
from typing import Literal

from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.selector import Draws
from mechanisms.utilities.utility import Grid

SelectorName = Literal["permute_and_flip", "exponential", "subset", "laplace"]


@dataclass(frozen=True)
class Choice:
    """One way to select; ``draws`` is read by the selectors that draw one after another.

    ``clip``: lower scores count as this many units. 0 stands for no clip; others take ``subset``.
    ``gaussian``: the noisy vector has Gaussian noise, for a loss in ρ alone.
    """

    sensitivity: Sensitivity
    selector: SelectorName
    draws: Draws = "peeled"
    clip: int = 0
    gaussian: bool = False

    @property
    def ordered(self) -> bool:
        """True if the order of an answer means something: likely the best first."""
        return self.selector != "subset"

    def as_dict(self) -> dict[str, str]:
        """The names in answers and quotes."""
        named = {"sensitivity": self.sensitivity.value, "selector": self.selector}
        if self.clip:
            named["score_floor"] = str(self.clip)
        if self.gaussian:
            named["noise"] = "discrete_gaussian"
        drawn = self.selector in ("permute_and_flip", "exponential")
        return {**named, "draws": self.draws} if drawn else named


def order_preserving(sensitivity: Sensitivity, grid: Grid) -> bool:
    """True if a candidate of higher utility never has a lower score, in any dataset.

    ``global`` divides all utilities by one number, and ``flattened`` covers them by one sequence of
    steps. Where δ is constant from the start, all four ways give the same order.
    """
    return sensitivity in (Sensitivity.GLOBAL, Sensitivity.FLATTENED) or grid.horizon == 1
