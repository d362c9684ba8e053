"""The service, with a run time that depends on the records, as no mechanism here should have.

A statistic of an odd number of rows takes some seconds longer. Nothing of this is in the service
itself: the query kind is wrapped in this process. Settings come from the environment.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.service.processes import Checkout


def planted_service(data: Path, work: float, more: float, settings: Mapping[str, str]) -> Checkout:
    """A service in which statistics take ``work`` seconds, and of odd numbers of rows ``more``."""
    command = ("-m", "benchmarks.service.planted", str(work), str(more))
    return Checkout(data, command=command, settings=settings)


def planted(work: float, more: float) -> Callable[..., Any]:
    """``StatisticQuery.compute`` with a run time that depends on the records."""
    from app.queries.statistic.body import StatisticQuery

    compute = StatisticQuery.compute

    def slower(query: StatisticQuery, context: Any) -> Any:
        rows = len(next(iter(context.records.codes.values())))
        time.sleep(work + more * (rows % 2))
        return compute(query, context)

    return slower


def main() -> None:
    from uvicorn import run

    from app.config.settings import Settings
    from app.main import create_app
    from app.queries.statistic.body import StatisticQuery

    work, more, _, port = sys.argv[1:]
    StatisticQuery.compute = planted(float(work), float(more))  # type: ignore[method-assign]
    run(create_app(Settings()), host="127.0.0.1", port=int(port), log_config=None)


if __name__ == "__main__":
    main()
