"""The kind of query ``top_k``, which selects several candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from privypurse.amounts import Number, decimal_text
from privypurse.answers.answer import TopK
from privypurse.kinds.query import AutoSensitivity, Call, Query, Utility, members


class Options(TypedDict, total=False):
    candidates: Mapping[str, Any]
    objective: Literal["single", "weighted_sum", "pareto"]
    sensitivity: AutoSensitivity
    selector: Literal["auto", "permute_and_flip", "exponential", "subset", "laplace"]
    stages: Mapping[str, Any]
    passes: int
    draws: Literal["auto", "peeled", "one_shot"]
    rescore: bool
    delta: Number


def top_k(
    k: int, utilities: Utility | Sequence[Utility], **options: Unpack[Options]
) -> Query[TopK]:
    """A query for k different candidates: in order, or as one set in the public order.

    ``delta`` is for the values of an open attribute, of which fewer than k may come back.
    """
    body: dict[str, Any] = {"kind": "top_k", "k": k, "utilities": members(utilities), **options}
    if "delta" in body:
        body["delta"] = decimal_text(body["delta"])
    return Query(body, TopK.read)


class TopKCall(Call):
    def top_k(
        self,
        dataset: str,
        k: int,
        utilities: Utility | Sequence[Utility],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> TopK:
        """Pay for k candidates; they are likely to have utilities close to the highest.

        ``rho`` in place of ``epsilon``: the largest of a vector with Gaussian noise, for counts and
        degrees in accounts that allow it.
        """
        query = top_k(k, utilities, **options)
        return self.ask(dataset, query, epsilon=epsilon, rho=rho, key=key)
