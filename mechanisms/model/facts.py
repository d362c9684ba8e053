"""What the catalogue says about the parts of a selection; kept beside the code it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mechanisms.model.domains import NeighbouringRelation


@dataclass(frozen=True)
class SensitivityFacts:
    """How far one change moves a utility, as formulas in public bounds and private counts.

    ``cap``: Δ, the most anywhere; ``function``: δ(t), the most t changes away, which is admissible;
    ``horizon``: T, from where on δ equals Δ; ``terms`` says what the letters stand for.
    """

    cap: str
    function: str
    horizon: str
    terms: str


#: By relation: δ is tied to one.
ByRelation = Mapping[NeighbouringRelation, SensitivityFacts]


@dataclass(frozen=True)
class ObjectiveFacts:
    """An objective in words; its sensitivity follows from those of its members."""

    title: str
    description: str
    source: str
    sensitivity: SensitivityFacts
    #: The public rule for the direction of the shift.
    shift: str
