"""Release instants: the public moments at which an answer may leave.

The run time of work on open arrays may depend on records. So nothing about a query is shown before
its release instant: the first reservation + interval · 2^j, j = 0, 1, …, after the end of the work.
An observer of a run time therefore sees one of about a dozen values.
"""

import math

#: The share of one interval that is set aside to store the answer before its release instant.
SETTLING_SHARE = 0.25


def release_after(elapsed: float, interval: float) -> float:
    """Seconds from reservation to release, for work that ended ``elapsed`` seconds after it.

    ``interval`` 0 disables release instants: the answer leaves when it is ready.
    """
    if interval <= 0:
        return elapsed
    ready = max(elapsed, 0.0) + SETTLING_SHARE * interval
    return next_instant(ready, interval)


def next_instant(elapsed: float, interval: float) -> float:
    """The first instant interval · 2^j, j ≥ 0, that is not before ``elapsed``."""
    if interval <= 0:
        return elapsed
    doublings = max(0, math.ceil(math.log2(max(elapsed, interval) / interval)))
    # The rounding of log2 near a power of two may be wrong by one in either direction.
    while interval * 2.0**doublings < elapsed:
        doublings += 1
    while doublings and interval * 2.0 ** (doublings - 1) >= elapsed:
        doublings -= 1
    return interval * 2.0**doublings


def next_from(started: float, instant: float, interval: float) -> float:
    """Seconds from ``started`` to its first release instant that is not before ``instant``.

    Both arguments are seconds of the monotonic clock.
    """
    # ``started + interval - started`` may round to more than the interval. Without subtracting one
    # ulp, a query would wait for two intervals at some uptimes of the machine and one at others.
    return next_instant(instant - started - math.ulp(instant), interval)
