"""The kind of query ``top_k``, which selects several candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from privypurse.amounts import Number
from privypurse.answers import TopK
from privypurse.kinds.query import Call, Query, Selector, Sensitivity, Utility, members


class Options(TypedDict, total=False):
    candidates: Mapping[str, Any]
    objective: Literal["single", "weighted_sum", "pareto"]
    sensitivity: Sensitivity
    selector: Selector
    passes: int
    draws: Literal["peeled", "one_shot"]
    rescore: bool


def top_k(
    k: int, utilities: Utility | Sequence[Utility], **options: Unpack[Options]
) -> Query[TopK]:
    """A query for k different candidates; the answer lists them in the order of drawing."""
    body = {"kind": "top_k", "k": k, "utilities": members(utilities), **options}
    return Query(body, TopK.read)


class TopKCall(Call):
    def top_k(
        self,
        dataset: str,
        k: int,
        utilities: Utility | Sequence[Utility],
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> TopK:
        """Pay for k candidates; they are likely to have utilities close to the highest."""
        return self.ask(dataset, top_k(k, utilities, **options), epsilon=epsilon, key=key)
