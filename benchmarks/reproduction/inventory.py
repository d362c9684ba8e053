"""Every table and figure of the four papers: what recomputes it, or why it cannot be had.

They are named by what they show; printed numbers are given where they are certain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.reproduction.experiments.influential_nodes import PAPER as DAMPENING
from benchmarks.reproduction.experiments.salaries import PAPER as NOISE


@dataclass(frozen=True)
class Shown:
    paper: str
    what: str
    experiments: tuple[str, ...] = ()
    reason: str = ""

    def written(self) -> dict[str, Any]:
        return asdict(self)


INVENTORY: tuple[Shown, ...] = (
    Shown(DAMPENING, "recall of influential nodes",
          tuple(f"influential_nodes.{g}" for g in ("github", "enron", "dblp"))),
    Shown(NOISE, "Figure 3: noise of prefix sums of salaries", ("salaries",)),
)  # fmt: skip
