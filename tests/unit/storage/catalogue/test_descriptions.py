"""Domains survive the trip through JSON exactly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.model.domains import (
    CategoricalAttribute,
    Domain,
    GraphDomain,
    NumericAttribute,
    PrefixDomain,
    TableDomain,
)
from storage.catalogue.descriptions import Labels, decode_domain, encode_domain

texts = st.text(max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False)
categorical = st.builds(
    CategoricalAttribute, texts, st.lists(texts, max_size=4).map(tuple), st.none() | texts
)
numeric = st.builds(
    NumericAttribute,
    texts,
    floats,
    floats,
    st.lists(floats, min_size=2, max_size=5).map(tuple),
    st.none() | texts,
    st.booleans(),
)
counts = st.none() | st.integers(0, 10**9)
domains = st.one_of(
    st.integers(1, 10**7).flatmap(
        lambda nodes: st.builds(GraphDomain, st.just(nodes), st.integers(0, nodes - 1))
    ),
    st.builds(
        TableDomain,
        st.lists(categorical | numeric, max_size=4).map(tuple),
        st.none() | texts,
        counts,
        counts,
        st.integers(0, 10**9),
        st.none() | texts,
    ),
    st.builds(PrefixDomain, st.lists(floats, max_size=5).map(tuple)),
)


def no_labels() -> Labels:
    raise AssertionError("there are no labels to open")


@given(domain=domains)
def test_a_domain_comes_back_equal(domain: Domain) -> None:
    back = decode_domain(encode_domain(domain), labels=no_labels)
    assert back == domain
    assert type(back) is type(domain)
    assert repr(back) == repr(domain)  # unlike ==, repr tells −0.0 from 0.0


def test_labels_are_opened_only_where_there_are_some() -> None:
    text = encode_domain(GraphDomain(2, 1, ["a", "b"]))
    assert '"a"' not in text
    back: Any = decode_domain(text, labels=lambda length: ["a", "b"][:length])
    assert back.labels == ["a", "b"]


def test_rows_fixed_later_are_put_in() -> None:
    text = encode_domain(TableDomain((), rows=None))
    back: Any = decode_domain(text, labels=no_labels, rows=7)
    assert back.rows == 7


def test_there_is_no_json_for_nan() -> None:
    with pytest.raises(ValueError):
        encode_domain(PrefixDomain((float("nan"),)))


def test_the_text_of_a_table_without_persons_is_that_of_earlier_versions() -> None:
    assert encode_domain(TableDomain((), max_rows=3)) == (
        '{"kind":"table","attributes":[],"class_attribute":null,"rows":null,"max_rows":3,'
        '"min_rows":0}'
    )
