"""The options for learning a metric, which ``distance`` and ``clustering`` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from privypurse.kinds.query import Selector


class MetricOptions(TypedDict, total=False):
    context: Literal["baseline", "mean_su", "max_relevance", "max_dependency"]
    selection_rule: Literal["mean_su", "not_redundant", "max_relevance", "max_dependency"]
    threshold: float
    context_size: int
    context_share: float
    sensitivity: Literal["global", "local"]
    selector: Selector
    attributes: Sequence[str]
