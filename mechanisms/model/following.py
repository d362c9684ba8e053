"""Declarations of code whose work depends on private records.

The run time of a query must not tell anything of the records. So code takes the same steps for all
datasets of one description. Where it does not, the function says why and names a public bound, up
to which the cost of a query counts it. ``tests/evidence/timing`` checks both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Following:
    """Why a function's work depends on records, and its public bound."""

    why: str
    #: The public bound on how often one call may execute any single line, in the function or in
    #: functions that it calls. The bound is itself a function, with parameters that are named like
    #: arguments of the function.
    bound: Callable[..., int]
    #: The public bound on the random words that one call draws; None if their number is the same
    #: for all records.
    words: Callable[..., int] | None


#: The declarations of all functions whose work depends on records, made by ``follows_records``. The
#: keys are code objects.
FOLLOWING: dict[CodeType, Following] = {}


def follows_records(
    why: str, bound: Callable[..., int], words: Callable[..., int] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function; on a kernel this decorator stands below ``compiled``."""

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        FOLLOWING[function.__code__] = Following(why, bound, words)
        return function

    return declare
