"""Whether the event loop or the work of queries gets a processor first."""

import os
import sys

#: The number that is added to the ``nice`` value of the event loop, so that queries in threads get
#: a processor first. With 10, light queries, which run on the event loop, wait too long.
BEHIND = 5


def let_work_go_first() -> None:
    """Lower the priority of the calling thread, which is that of the event loop; on Linux only.

    Work that ends late misses its deadline, which reveals that it took long. An event loop that is
    late moves replies by ticks, which reveals nothing. Threads that it starts from now on inherit
    its priority.
    """
    if sys.platform == "linux":
        os.nice(BEHIND)
