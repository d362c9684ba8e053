"""The service with one change, served as usual: nothing of this is in the service itself.

``slow WORK MORE`` gives it a run time that depends on the records, as no mechanism here should
have: statistics take so many seconds, and of an odd number of rows some more. Each takes one of
``PLANTED_SLOTS`` slots. ``framework`` sends queries through the routes of FastAPI, past no fast
lane. Settings come from the environment.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.service.processes import Checkout

#: The environment variable with the number of slots of the planted service, which is how many
#: queries run at the same time.
SLOTS = "PLANTED_SLOTS"
COMMAND = ("-m", "benchmarks.service.planted")


def planted_service(data: Path, work: float, more: float, settings: Mapping[str, str]) -> Checkout:
    """A service in which statistics take ``work`` seconds, and of odd numbers of rows ``more``."""
    return Checkout(data, command=(*COMMAND, "slow", str(work), str(more)), settings=settings)


def planted(work: float, more: float) -> Callable[..., Any]:
    """``StatisticQuery.compute`` with a run time that depends on the records."""
    from app.queries.statistic.body import StatisticQuery

    compute = StatisticQuery.compute

    def slower(query: StatisticQuery, context: Any) -> Any:
        rows = context.records.rows
        time.sleep(work + more * (rows % 2))
        return compute(query, context)

    return slower


def give_slots(slots: int, patch: Callable[[Any, str, Any], None]) -> None:
    """Every query takes a thread and one of so many slots, although its public cost is small."""
    from app.config.settings import Settings
    from app.engine import attempts, schedule

    patch(Settings, "slots", lambda _: slots)
    patch(schedule, "LIGHT", -1.0)
    patch(attempts, "INLINE", -1.0)


def main() -> None:
    from app import main
    from app.cli.serving import serve
    from app.queries.statistic.body import StatisticQuery

    change, *seconds, _, port = sys.argv[1:]
    if change == "slow":
        StatisticQuery.compute = planted(*map(float, seconds))  # type: ignore[method-assign]
        give_slots(int(os.environ.get(SLOTS, "16")), setattr)
    else:
        main.create_app = partial(main.create_app, fast_lane=False)
    serve(port=int(port))


if __name__ == "__main__":
    main()
