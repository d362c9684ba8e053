"""The kind of query ``selection``, which selects one candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from privypurse.amounts import Number
from privypurse.answers.answer import Selection
from privypurse.kinds.query import AutoSensitivity, Call, Query, Utility, members


class Options(TypedDict, total=False):
    candidates: Mapping[str, Any]
    objective: Literal["single", "weighted_sum", "pareto"]
    sensitivity: AutoSensitivity
    selector: Literal["auto", "permute_and_flip", "exponential"]
    stages: Mapping[str, Any]
    passes: int


def selection(
    utilities: Utility | Sequence[Utility], **options: Unpack[Options]
) -> Query[Selection]:
    """A query for one candidate, likely one whose utility is close to the highest."""
    body = {"kind": "selection", "utilities": members(utilities), **options}
    return Query(body, Selection.read)


class SelectionCall(Call):
    def selection(
        self,
        dataset: str,
        utilities: Utility | Sequence[Utility],
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Selection:
        """Pay for one candidate; it is likely to have a utility close to the highest."""
        return self.ask(dataset, selection(utilities, **options), epsilon=epsilon, key=key)
