"""Every experiment; one line a file."""

from __future__ import annotations

from benchmarks.reproduction.experiment import Experiment
from benchmarks.reproduction.experiments import influential_nodes, salaries

EXPERIMENTS: tuple[Experiment, ...] = (
    *influential_nodes.experiments(),
    *salaries.experiments(),
)
