"""The one clock: when an answer may be seen.

Once the arrays are open, how long the work takes may depend on records. So nothing about a query
is shown before its release instant: the first of reservation + interval · 2^j that lies behind the
end of the work. A run time shows at most as one of about a dozen values.
"""

import math

#: Storing an answer takes a moment too, and that moment must end before the instant.
SETTLING_SHARE = 0.25


def release_after(elapsed: float, interval: float) -> float:
    """Seconds from reservation to release, for work that ended ``elapsed`` seconds after it.

    ``interval`` 0 switches the clock off: the answer leaves when it is there.
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
    # log2 may round either way next to a power of two.
    while interval * 2.0**doublings < elapsed:
        doublings += 1
    while doublings and interval * 2.0 ** (doublings - 1) >= elapsed:
        doublings -= 1
    return interval * 2.0**doublings


def next_from(started: float, instant: float, interval: float) -> float:
    """Seconds from ``started`` to the first of its own instants that is not before ``instant``.

    Both were read from one clock or computed from its readings.
    """
    # ``started + interval - started`` may be rounded to more than the interval. Without the ulp
    # queries would wait for two intervals at some uptimes of the machine, and for one at others.
    return next_instant(instant - started - math.ulp(instant), interval)
