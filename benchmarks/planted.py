"""The service, with a run time that depends on the records, as no mechanism here should have.

    python -m benchmarks.planted --port N --work S --more S

A statistic of an odd number of rows takes ``more`` seconds longer. Nothing of this is in the
service itself: the query kind is wrapped in this process. Settings come from the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from app.demo.service import ROOT, ServiceProcess


class PlantedService(ServiceProcess):
    """A process of the service in which statistics take ``work`` seconds, and some ``more``."""

    def __init__(self, data: Path, work: float, more: float, settings: Mapping[str, str]) -> None:
        super().__init__(data, **settings)
        self._planted = ["--work", str(work), "--more", str(more)]

    def start(self) -> Self:
        inherited = {name: value for name, value in os.environ.items() if name[:6] != "PURSE_"}
        inherited.pop("DATABASE_URL", None)
        here = {"PYTHONPATH": str(ROOT), "PURSE_DATA": str(self.data)}
        python = [sys.executable, "-m", "benchmarks.planted"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*python, "--port", str(self.port), *self._planted],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=inherited | here | self._settings,
            )
        return self


def planted(work: float, more: float) -> Callable[..., Any]:
    """``StatisticQuery.compute`` with a run time that depends on the records."""
    from app.queries.statistic.body import StatisticQuery

    compute = StatisticQuery.compute

    def slower(query: StatisticQuery, records: Any, *rest: Any) -> Any:
        rows = len(next(iter(records.codes.values())))
        time.sleep(work + more * (rows % 2))
        return compute(query, records, *rest)

    return slower


def main() -> None:
    import uvicorn

    from app.config.settings import Settings
    from app.main import create_app
    from app.queries.statistic.body import StatisticQuery

    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    for part in ("--work", "--more"):
        parser.add_argument(part, type=float, required=True, help="seconds")
    options = parser.parse_args()
    StatisticQuery.compute = planted(options.work, options.more)  # type: ignore[method-assign]
    uvicorn.run(
        create_app(Settings()),
        host="127.0.0.1",
        port=options.port,
        log_config=None,
    )


if __name__ == "__main__":
    main()
