"""The options for learning a metric between values, which ``distance`` and ``clustering`` share."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from accounting.privacy_loss import PrivacyLoss, format_units, parse_units
from app.contract.models import Body
from app.queries.parts.accuracy import CONFIDENCE, significant
from app.queries.parts.candidates import Text
from app.queries.parts.cost import CELL, memory
from mechanisms.distances import accuracy
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import MAX_SUBSETS, MOST_CELLS, Plan
from mechanisms.kernels.subsets import DENSE
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS

#: The name of an accuracy that a quote predicts or takes as a target: the scale of the noise in
#: each cell of a table of counts, which is σ for Gaussian noise.
TARGET = "cell_noise_scale"


def _share(value: object) -> object:
    """Reads a decimal text, as amounts have it, as the number that it names."""
    return float(format_units(parse_units(value, 9), 9)) if isinstance(value, str) else value


#: A fraction of a privacy loss, strictly between 0 and 1: a number or a decimal text.
Share = Annotated[float, Field(gt=0, lt=1), BeforeValidator(_share)]


class MetricOptions(Body):
    """The options for learning a metric. Options that a context does not use are ignored, except
    that ``selection_rule`` and ``threshold`` are refused unless the context is ``baseline``."""

    context: Literal["baseline", "mean_su", "max_relevance", "max_dependency"] = Field(
        default="max_relevance",
        description="How the context of an attribute is found: attributes that tell its values "
        "apart. `baseline` reads it off noisy tables of all pairs.",
    )
    selection_rule: (
        Literal["mean_su", "not_redundant", "max_relevance", "max_dependency"] | None
    ) = Field(
        default=None,
        description="For `baseline` alone: the rule that chooses contexts; `mean_su` by default.",
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="For `mean_su` in `baseline` alone: the threshold, as a multiple of the mean.",
    )
    context_size: int | None = Field(
        default=None,
        ge=1,
        description="The attributes of a context; 3 by default, or all others if there are fewer.",
    )
    context_share: Share = Field(
        default=0.3, description="The part of ε, or of ρ, spent on contexts."
    )
    sensitivity: Literal["global", "local"] = Field(
        default="local",
        description="Scores of contexts are scaled by the global sensitivity, or dampened locally.",
    )
    selector: Literal["permute_and_flip", "exponential"] = "permute_and_flip"
    attributes: tuple[Text, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=10_000,
        description="The attributes to use; by default all but the class attribute.",
    )

    @model_validator(mode="after")
    def _of_the_baseline(self) -> Any:
        if self.context != "baseline" and (self.selection_rule or self.threshold is not None):
            raise ValueError("selection_rule and threshold are of the context baseline")
        if self.threshold is not None and (self.selection_rule or "mean_su") != "mean_su":
            raise ValueError("threshold is of the selection rule mean_su")
        if self.attributes is not None and len(set(self.attributes)) < len(self.attributes):
            raise ValueError("an attribute is listed twice")
        return self

    def options(self) -> Options:
        return Options(
            context=Context(self.context),
            rule=Rule(self.selection_rule or "mean_su"),
            threshold=exact(1.0 if self.threshold is None else self.threshold),
            context_size=self.context_size,
            context_share=exact(self.context_share),
            sensitivity=Sensitivity(self.sensitivity),
            selector=SELECTORS[self.selector],
        )


def exact(number: float) -> Fraction:
    """Converts a float by its shortest decimal form, so that 0.3 is exactly three tenths."""
    return Fraction(repr(number))


def noise_words(loss: PrivacyLoss) -> str:
    """Returns what an accuracy states about the noise of a loss, before its number."""
    return "Gaussian noise of standard deviation" if loss.unpriced else "Laplace noise of scale"


def predicted(plan: Plan, loss: PrivacyLoss) -> dict[str, Any]:
    """Returns the predicted accuracy of a metric for a quote; it reads public facts alone."""
    said: dict[str, Any] = {
        "tables_at_most": plan.tables,
        TARGET: significant(accuracy.cell_noise_scale(plan, loss)),
    }
    explanation = (
        f"Every cell of a table carries {noise_words(loss)} `{TARGET}` at most, in records; "
        "less where contexts share tables."
    )
    if plan.baseline is None and plan.options.context is Context.MEAN_SU:
        said["entropy_noise_scale"] = significant(accuracy.entropy_noise_scale(plan, loss))
        explanation += " Every entropy carries Laplace noise of scale `entropy_noise_scale` bits."
    elif plan.baseline is None:
        below = accuracy.score_below_best(plan, loss, CONFIDENCE)
        said |= {"confidence": CONFIDENCE, "score_below_best": significant(below)}
        explanation += (
            " With probability `confidence`, for one target, whatever is drawn for its context "
            "scores at most `score_below_best` below the best left, in steps of the sensitivity."
        )
        if plan.options.sensitivity is Sensitivity.GLOBAL:
            unit = accuracy.information_unit(plan)
            said["information_below_best"] = significant(below * unit)
            explanation += (
                " That is `information_below_best` bits of mutual information at the public "
                "bound on rows."
            )
    return {**said, "explanation": explanation}


def metric_memory(plan: Plan) -> int:
    """Returns the public bound on the bytes of learning a metric."""
    levels = plan.levels
    # Each pair of attributes needs at most one table of counts, and each attribute one matrix of
    # distances. Together they have at most this many cells.
    cells = sum(levels) ** 2
    subsets = plan.baseline is None and plan.options.context is Context.MAX_DEPENDENCY
    more = (DENSE + MAX_SUBSETS + MOST_CELLS) * CELL if subsets else 0
    return memory(plan.dataset, cells=cells, more=more)
