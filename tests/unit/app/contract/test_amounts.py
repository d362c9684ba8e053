"""Amounts are read exactly or refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from accounting.privacy_loss import MAX_DELTA_ATTO, MAX_EPSILON_NANO, NANO, PrivacyLoss
from app.contract.amounts import (
    MAX_QUERY_EPSILON_NANO,
    MIN_QUERY_EPSILON_NANO,
    Delta,
    Limit,
    QueryEpsilon,
)

epsilon: TypeAdapter[int] = TypeAdapter(QueryEpsilon)
delta: TypeAdapter[int] = TypeAdapter(Delta)
limit: TypeAdapter[PrivacyLoss] = TypeAdapter(Limit)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0.1", NANO // 10),
        ('"0.1"', NANO // 10),
        ("1", NANO),
        ("1e-6", 1000),
        ('"1e6"', MAX_QUERY_EPSILON_NANO),
        ("0.000001", MIN_QUERY_EPSILON_NANO),
        ('"0.123456789"', 123_456_789),
    ],
)
def test_numbers_and_decimal_strings_are_read_exactly(text: str, nano: int) -> None:
    assert epsilon.validate_json(text) == nano


@pytest.mark.parametrize(
    "text",
    [
        *("true", "false", "null", "[]", "{}", '""', '" 1"', '"1_0"', '"0x1"', '"NaN"', '"inf"'),
        *("0", "-1", '"-0.5"', "1e-300", "1e300", "0.0000009", "1000000.1", '"1e7"'),
        *('"0.1234567891"', "0.00000100000000001", '"٣"', '"' + "1" * 100 + '"', "1" * 300),
    ],
)
def test_everything_else_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        epsilon.validate_json(text)
    (error,) = refusal.value.errors()
    assert error["type"] in {"amount", "amount_range", "amount_type"}
    assert text.strip('"') not in error["msg"] or len(text) < 4


@pytest.mark.parametrize("text", ["1", "1.0", '"1e0"', "-1e-18", '"1e-19"'])
def test_a_delta_is_below_one_and_has_eighteen_places(text: str) -> None:
    with pytest.raises(ValidationError):
        delta.validate_json(text)


@given(
    nano=st.integers(0, MAX_EPSILON_NANO), atto=st.integers(0, MAX_DELTA_ATTO), dump=st.booleans()
)
def test_a_limit_survives_the_way_out_and_in(nano: int, atto: int, dump: bool) -> None:
    value = PrivacyLoss(nano, atto)
    text = limit.dump_json(value) if dump else json.dumps(value.as_dict())
    assert limit.validate_json(text) == value
    assert limit.validate_python(value) is value


@pytest.mark.parametrize(
    "body", ['{"epsilon": 1, "x": 1}', "{}", '{"delta": 0}', "1", "[]", '{"epsilon": "1000000001"}']
)
def test_a_limit_is_an_object_of_its_two_amounts(body: str) -> None:
    with pytest.raises(ValidationError):
        limit.validate_json(body)


def test_delta_is_zero_when_left_out() -> None:
    assert limit.validate_json('{"epsilon": 2}') == PrivacyLoss(2 * NANO)


@pytest.mark.parametrize(
    "value", [{"epsilon": 0.5}, {"epsilon": "0.5", "delta": "1e-5"}, {"epsilon": 1, "delta": 0}]
)
def test_the_schema_admits_what_is_read(value: Any) -> None:
    jsonschema.validate(value, limit.json_schema())
    limit.validate_json(json.dumps(value))


@pytest.mark.parametrize("value", [{"epsilon": "x"}, {"epsilon": -1}, {"epsilon": True}, {}, 1])
def test_the_schema_refuses_what_is_refused(value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, limit.json_schema())
    with pytest.raises(ValidationError):
        limit.validate_json(json.dumps(value))
