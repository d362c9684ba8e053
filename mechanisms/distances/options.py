"""Options of learning a metric, chosen by the analyst and checked without a dataset.

Source: Battaglia, Celano, Pensa, Differentially private distance learning in categorical data, DAMI
    2021, with its errata (docs/privacy.md).
"""

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS, Selector


class Context(StrEnum):
    """How the context of a target is selected: the attributes that distinguish its values."""

    #: A ``Rule`` derives the context (a set of attributes) from noisy tables of pairs of
    #: attributes. These tables are released anyway, so the context takes no privacy loss of its
    #: own.
    BASELINE = "baseline"
    #: The context consists of the attributes whose noisy symmetric uncertainty with the target is
    #: at least ``threshold`` times the mean over all attributes.
    MEAN_SU = "mean_su"
    #: The context consists of the k attributes with the most information about the target, where
    #: each attribute is rated by itself.
    MAX_RELEVANCE = "max_relevance"
    #: The context is the set of k attributes that together have the most information about the
    #: target.
    MAX_DEPENDENCY = "max_dependency"


class Rule(StrEnum):
    """How a context is derived from noisy tables; this is post-processing, at no further loss."""

    MEAN_SU = "mean_su"
    NOT_REDUNDANT = "not_redundant"
    MAX_RELEVANCE = "max_relevance"
    MAX_DEPENDENCY = "max_dependency"


#: The default number of attributes in the context of a target. If fewer attributes remain besides
#: the target, the context has all of them.
USUAL_SIZE = 3


@dataclass(frozen=True)
class Options:
    """The public choices of the analyst.

    ``rule`` and ``threshold`` (σ in [0, 1], for the rule ``mean_su``) apply to the baseline.
    ``context_size`` k applies to all rules and contexts that need a size. ``context_share`` h in
    (0, 1), ``sensitivity`` and ``selector`` apply to contexts with a loss of their own.
    """

    context: Context
    rule: Rule = Rule.MEAN_SU
    threshold: Fraction = Fraction(1)
    context_size: int | None = None
    context_share: Fraction = Fraction(3, 10)
    sensitivity: Sensitivity = Sensitivity.LOCAL
    selector: Selector = field(default_factory=lambda: SELECTORS["permute_and_flip"])

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ValueError("the threshold lies between 0 and 1")
        if not 0 < self.context_share < 1:
            raise ValueError("the share of contexts lies strictly between 0 and 1")
        if self.context_size is not None and self.context_size < 1:
            raise ValueError("a context has at least one attribute")
        if self.sensitivity not in (Sensitivity.GLOBAL, Sensitivity.LOCAL):
            raise ValueError("contexts are drawn with global or with local sensitivity")

    @property
    def baseline_rule(self) -> Rule:
        """The rule that derives contexts from tables of all pairs, for any requested context."""
        return self.rule if self.context is Context.BASELINE else Rule(self.context.value)
