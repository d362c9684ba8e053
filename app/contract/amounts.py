"""Amounts of privacy loss as clients write them: JSON numbers or decimal strings.

They are read as whole units (10⁻⁹ of ε, 10⁻¹⁸ of δ). More decimal places than that are an error,
so the requested amount and the charged amount cannot differ by rounding.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from accounting.account import Limit as AccountLimit
from accounting.conversion import MOST_COMPOSITION_ATTO, MOST_EPSILON_NANO
from accounting.privacy_loss import (
    ATTO,
    MAX_DELTA_ATTO,
    MAX_EPSILON_NANO,
    NANO,
    PrivacyLoss,
    format_units,
    parse_units,
)
from accounting.rho import LARGEST_FEMTO
from app.contract.models import Body

#: The range of a query's ε: 10⁻⁶ … 10⁶.
MIN_QUERY_EPSILON_NANO = NANO // 10**6
MAX_QUERY_EPSILON_NANO = NANO * 10**6
#: The largest ρ of a query is 1000. No account has a larger limit in ρ.
MAX_QUERY_RHO_FEMTO = LARGEST_FEMTO

_DECIMAL = r"^[+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class Units:
    """Annotates an ``int`` field that holds units of 10^−``digits`` and reads decimal amounts."""

    digits: int
    least: int
    most: int

    def parse(self, amount: object) -> int:
        if isinstance(amount, bool) or not isinstance(amount, (int, float, str)):
            raise PydanticCustomError("amount_type", "an amount is a number or a decimal string")
        try:
            units = parse_units(amount, self.digits)
        except ValueError as refusal:
            # The messages of parse_units are fixed texts, so the reply never repeats the input.
            raise PydanticCustomError("amount", "{reason}", {"reason": str(refusal)}) from None
        if not self.least <= units <= self.most:
            raise PydanticCustomError(
                "amount_range",
                "an amount between {least} and {most} is required",
                {"least": self.format(self.least), "most": self.format(self.most)},
            )
        return units

    def format(self, units: int) -> str:
        return format_units(units, self.digits)

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(
                self.format, return_schema=core_schema.str_schema()
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        text: dict[str, Any] = {"type": "string", "pattern": _DECIMAL, "maxLength": 64}
        if handler.mode == "serialization":
            return text
        number = {
            "type": "number",
            "minimum": float(self.format(self.least)),
            # The float that is nearest to 1 − 10⁻¹⁸ is 1 itself, so 1 must be excluded.
            ("exclusiveMaximum" if self.most == ATTO - 1 else "maximum"): float(
                self.format(self.most)
            ),
        }
        return {"anyOf": [number, text], "description": f"at most {self.digits} decimal places"}


#: ε of a query, in units of 10⁻⁹.
QueryEpsilon = Annotated[int, Units(9, MIN_QUERY_EPSILON_NANO, MAX_QUERY_EPSILON_NANO)]
#: ρ of a query, in units of 10⁻¹⁵.
QueryRho = Annotated[int, Units(15, 1, MAX_QUERY_RHO_FEMTO)]
#: ε of a limit: of an analyst's allowance, or of the cap on all analysts of a dataset.
LimitEpsilon = Annotated[int, Units(9, 0, MAX_EPSILON_NANO)]
#: δ of a query or of a limit, in units of 10⁻¹⁸: 0 ≤ δ < 1.
Delta = Annotated[int, Units(18, 0, MAX_DELTA_ATTO)]


#: ε in a reply, made of nano-epsilons.
Epsilon = Annotated[str, BeforeValidator(partial(format_units, digits=9))]


class LimitFields(Body):
    epsilon: LimitEpsilon
    delta: Delta = 0

    def value(self) -> Any:
        """The value of ``accounting`` that a request has written."""
        return PrivacyLoss(self.epsilon, self.delta)


class OverallFields(LimitFields):
    @model_validator(mode="before")
    @classmethod
    def _in_epsilon_alone(cls, body: Any) -> Any:
        if isinstance(body, dict) and "composition_delta" in body:
            raise ValueError(
                "a limit over all datasets counts in epsilon and delta alone: composition_delta "
                "belongs to the allowances and the caps of datasets"
            )
        return body


#: A larger δ_c needs an explicit confirmation. δ_c is the probability that charges counted in ρ
#: exceed the limit in ε. With 10,000 records and a probability above 1/10,000 for each, this would
#: be likely for one of them.
USUAL_COMPOSITION_ATTO = ATTO // 10**4


class CompositionFields(Body):
    """The δ_c of a limit: charges are counted in ρ as well, which admits more small queries.

    0: in ε alone. ``gaussian`` allows Gaussian noise, after whose first charge only the limit in ρ
    admits charges.
    """

    composition_delta: Annotated[int, Units(18, 0, MOST_COMPOSITION_ATTO)] = 0
    allow_large_delta: bool = False
    gaussian: bool = False

    @model_validator(mode="after")
    def _small(self) -> Self:
        if self.composition_delta > USUAL_COMPOSITION_ATTO and not self.allow_large_delta:
            raise ValueError(
                "a composition_delta above 0.0001 needs allow_large_delta: it is the share of "
                "the probability for which the promise of epsilon does not hold"
            )
        if self.gaussian and not self.composition_delta:
            raise ValueError("gaussian needs a composition_delta")
        return self


class AllowanceFields(LimitFields, CompositionFields):
    """A limit in ε and δ, and maybe a δ_c."""

    @model_validator(mode="after")
    def _counts_rho(self) -> Self:
        if self.composition_delta and self.epsilon > MOST_EPSILON_NANO:
            raise ValueError("composition_delta needs an epsilon of at most 1000")
        if self.gaussian and not self._limit(gaussian=False).rho_femto:
            raise ValueError("gaussian needs a composition_delta that leaves a limit in rho")
        return self

    def value(self) -> Any:
        return self._limit(self.gaussian)

    def _limit(self, gaussian: bool) -> AccountLimit:
        loss = PrivacyLoss(self.epsilon, self.delta)
        return AccountLimit.of(loss, self.composition_delta, gaussian)


@dataclass(frozen=True)
class AsAmounts:
    """Annotates a value of ``accounting`` that is read and written as a JSON object of amounts.

    ``fields`` reads it; ``more`` are the names of amounts that it may write beside ε and δ, and
    ``flags`` those of permissions.
    """

    fields: type[LimitFields]
    more: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        read = core_schema.no_info_after_validator_function(
            self.fields.value, handler.generate_schema(self.fields)
        )
        instance = core_schema.is_instance_schema(source)
        return core_schema.json_or_python_schema(
            json_schema=read,
            python_schema=core_schema.union_schema([instance, read]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                source.as_dict,
                return_schema=core_schema.dict_schema(core_schema.str_schema()),
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        if handler.mode == "serialization":
            amount = {"type": "string", "pattern": _DECIMAL}
            amounts = dict.fromkeys(("epsilon", "delta", *self.more), amount)
            flags = {name: {"type": "boolean"} for name in self.flags}
            return {
                "type": "object",
                "properties": {**amounts, **flags},
                "required": ["epsilon", "delta"],
            }
        return handler(self.fields.__pydantic_core_schema__)


#: The limit of an analyst (an allowance) or of all analysts of a dataset (a cap): 0 ≤ ε ≤ 10⁹, δ,
#: and optionally δ_c, with which charges count in ρ too.
Allowance = Annotated[
    AccountLimit, AsAmounts(AllowanceFields, ("rho", "composition_delta"), ("gaussian",))
]
#: The ε and δ of a limit, of the sum of an account's charges, or of what remains: 0 ≤ ε ≤ 10⁹.
Limit = Annotated[PrivacyLoss, AsAmounts(LimitFields)]
#: The sum of an account's charges, or what remains. It has a ρ if the account counts in ρ.
Charged = Annotated[PrivacyLoss, AsAmounts(LimitFields, ("rho",))]
#: The limit on one analyst's charges over all datasets together.
OverallLimit = Annotated[PrivacyLoss, AsAmounts(OverallFields)]
