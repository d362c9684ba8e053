"""What an experiment is: a name, and a function from a setting to a result.

The expected seconds of a processor order the work (the longest first) and foretell its end; they
decide nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.reproduction.result import Result


@dataclass(frozen=True)
class Setting:
    """Where the data lie, the seed of the simulation, and how much to repeat.

    ``earlier`` holds what the experiments that this one needs have kept, by name.
    """

    data: Path
    seed: int
    quick: bool = False
    #: Repetitions in multiples of the usual.
    more: int = 1
    earlier: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def times(self, usual: int) -> int:
        return 3 if self.quick else usual * self.more

    def fewer(self, usual: list[Any]) -> list[Any]:
        """All of them, or three when it has to be quick."""
        return [usual[0], usual[len(usual) // 2], usual[-1]] if self.quick else usual


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    paper: str
    #: Files of the data folder that it reads.
    files: tuple[str, ...]
    run: Callable[[Setting], Result]
    seconds: float
    needs: tuple[str, ...] = ()

    def seed(self, seed: int) -> int:
        """Its own stream for each seed of a whole run."""
        text = f"{seed}/{self.name}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8])
