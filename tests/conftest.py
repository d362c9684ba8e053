"""Every run draws the same examples: what fails, fails for everybody and at once.

``./run test --slow`` draws twice as many, with the profile ``thorough``. New examples are drawn
with the profile ``explore``: ``./run test --hypothesis-profile=explore tests/unit/mechanisms``.
"""

from __future__ import annotations

import gc
import sys
from collections import deque

from hypothesis import HealthCheck, settings

from tests.support.compiled_statements import share_compiled_statements

# Examples have no deadline, because no test may fail where the machine is slow or busy.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)

settings.register_profile("few", _PATIENT, derandomize=True, max_examples=10)
settings.register_profile("same", _PATIENT, derandomize=True, max_examples=50)
settings.register_profile("thorough", _PATIENT, derandomize=True, max_examples=100)
settings.register_profile("explore", _PATIENT, max_examples=1000)
settings.load_profile("same")


def pytest_collection() -> None:
    """Python looks for no garbage while pytest collects, which would take a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Services of the tests do not warm up, because that would take seconds in every process.

    Their first query of each kind may be slow. ``test_warming_up.py`` tests the warm-up itself.
    The machine is timed here unless it was before, as services refuse queries until it is.
    """
    priority = sys.modules.get("app.service.priority")
    if priority is not None:
        # Each service that a test starts in this process would lower the priority of the process a
        # little more, for good. Beside other work the tests would hardly run at all in the end.
        priority.BEHIND = 0
    warm = sys.modules.get("app.service.warm")
    if warm is not None:
        warm.LOADED.set()
        deque(warm.MachineSpeeds().steps(), maxlen=0)
    if "sqlalchemy" in sys.modules:
        share_compiled_statements()
    # The tests that pytest collected live until the end. If the garbage collector searched them
    # again and again, it would take a twentieth of the run.
    gc.freeze()
    gc.enable()
