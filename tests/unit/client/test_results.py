"""The client reads trees, distances, clusters and numbers as the service means them."""

from __future__ import annotations

import builtins
import json
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.cluster import DBSCAN
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer
from sklearn.utils.validation import check_is_fitted

from app.contract.attributes import Numeric
from app.queries import FORMATS
from mechanisms.kernels.forests import confusion
from mechanisms.model.forest import forest
from privypurse import (
    Clusters,
    Distances,
    Interval,
    NaiveBayes,
    Quote,
    Selection,
    Sheet,
    Table,
    TopK,
    Tree,
    Trees,
    Value,
    tree,
)
from privypurse.answers.classifier import Classifier
from privypurse.answers.clusters import nearest
from privypurse.kinds.tree import Algorithm
from privypurse.levels import Column, columns_of
from storage.ingest.cells import _bin
from tests.architecture.imports import ROOT
from tests.unit.app.queries.test_rendering import FOUND, GROWN, HOSTILE
from tests.unit.client.conftest import ANSWERED, Play
from tests.unit.mechanisms.trees.tables import dataset, people

PEOPLE = columns_of(
    {
        "attributes": [
            {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
            {"name": "town", "kind": "categorical", "values": ["a", "b", "c"], "missing": "?"},
            {"name": "age", "kind": "numeric", "bounds": [0, 100], "bins": [0, 25, 50, 75, 100]},
            {"name": "height", "kind": "numeric", "bounds": [0, 2], "bins": 3, "missing": "-"},
        ]
    }
)


def answered(answer: Any) -> dict[str, Any]:
    return ANSWERED | {"answer": answer}


def rows_of_people() -> list[dict[str, Any]]:
    records = people(500, seed=4)
    towns = ["a", "b", "c", None]
    return [
        {"sex": "fm"[sex], "town": towns[town], "age": age}
        for sex, town, age in zip(
            records.codes["sex"], records.codes["town"], records.values["age"], strict=True
        )
    ]


ALL_SPLITS: dict[str, Any] = {
    "attribute": "town",
    "branches": {
        "a": {"attribute": "age", "branches": {
            "[0,25)": {"label": "yes"}, "[25,50)": {"label": "no"},
            "[50,75)": {"label": "yes"}, "[75,100]": {"label": "no"}}},
        "b": {"attribute": "sex", "value": "f", "equal": {"label": "no"},
              "other": {"label": "yes"}},
        "c": {"attribute": "age", "threshold": 50.0, "below": {"label": "yes"},
              "above": {"label": "no"}},
        "?": {"label": "yes"},
    },
}  # fmt: skip


def test_predictions_are_those_of_the_service() -> None:
    """The service counts right and wrong labels of the same rows by its own kernels."""
    public, records = dataset(), people(500, seed=4)
    predicted = Tree(ALL_SPLITS, PEOPLE).predict(rows_of_people())
    paid = records.codes["paid"] == 0
    by_client = [
        int(np.sum(paid & (np.array(predicted) == "yes"))),
        int(np.sum(~paid & (np.array(predicted) == "no"))),
    ]
    rates = confusion(records, forest([ALL_SPLITS], public.domain, "paid", "yes"))
    assert [int(rates.true_positives[0]), int(rates.true_negatives[0])] == by_client
    assert 0 < by_client[0] < len(predicted)


@given(
    bins=st.integers(1, 40),
    lower=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    share=st.floats(0, 1),
)
def test_numbers_fall_into_the_bins_of_the_service(
    bins: int, lower: float, width: float, share: float
) -> None:
    form = {"name": "x", "kind": "numeric", "bounds": [lower, lower + width], "bins": bins}
    served = json.loads(Numeric.model_validate_json(json.dumps(form)).model_dump_json())
    attribute = Numeric.model_validate_json(json.dumps(form)).attribute()
    column = Column.of(served)
    edges = attribute.edges  # type: ignore[union-attr]
    value = min(lower + share * width, edges[-1])
    for number in (value, edges[int(share * bins)]):
        coded = _bin(np.array([number]), np.zeros(1, bool), attribute)  # type: ignore[arg-type]
        assert column.position(number, attribute.levels) == coded.codes[0]


def test_unknown_values_are_refused_and_none_is_missing() -> None:
    age, height, town = PEOPLE["age"], PEOPLE["height"], PEOPLE["town"]
    levels = ["[0,0.666667)", "[0.666667,1.33333)", "[1.33333,2]", "-"]
    assert height.position(2 / 3, levels) == 1
    assert height.position("1.4", levels) == 2
    for missing in (None, float("nan"), "-"):
        assert height.position(missing, levels) == 3
        assert height.number(missing) == 1.0
    assert town.position(None, ["a", "b", "c", "?"]) == 3
    for column, value in ((age, None), (age, 101), (town, "Mars"), (age, "old")):
        with pytest.raises(ValueError):
            column.position(value, ["a", "b"])
    clamped = Column.of({"name": "x", "kind": "numeric", "bounds": [0, 1], "clamp": True})
    assert clamped.number(7) == 1.0
    with pytest.raises(ValueError, match="no value of town"):
        Tree(ALL_SPLITS, PEOPLE).predict({"age": 3})


def test_probabilities_come_from_counts() -> None:
    grown = Tree(GROWN, PEOPLE)
    assert grown.predict({"sex": "f"}) == "yes"
    assert grown.predict_proba({"sex": "f"}) == {"yes": 1.0, "no": 0.0}
    rows = [{"sex": "m", "age": "[0,50)"}, {"sex": "m", "age": "[50,100]"}]
    assert grown.predict(rows) == ["no", "yes"]
    assert grown.predict_proba(rows)[1] == {"yes": 60 / 65, "no": 5 / 65}
    nothing = Tree({"label": "a", "counts": {"a": -1, "b": 0}}, {})
    assert nothing.predict_proba({}) == {"a": 0.5, "b": 0.5}
    with pytest.raises(ValueError, match="without counts"):
        Tree(FOUND, PEOPLE).predict_proba({"age": 60})


def test_a_forest_predicts_by_the_mean_of_its_trees() -> None:
    sure = {"label": "no", "counts": {"yes": {"value": 0}, "no": {"value": 4}}}
    one_sided = [{"label": "yes", "counts": {"yes": {"value": 3}, "no": {"value": 2}}}] * 2
    forest = Trees.read(answered({"trees": [sure, *one_sided]}), PEOPLE)
    # Two of the three trees predict "yes", but with less certainty than the third predicts "no".
    # The forest predicts "no", because the mean of the probabilities decides.
    assert forest.predict({}) == "no"
    assert forest.predict_proba([{}]) == [{"yes": pytest.approx(0.4), "no": pytest.approx(0.6)}]
    assert Trees.read(answered({"trees": [FOUND]}), PEOPLE).predict([{"age": 60}]) == ["yes"]


def bayes(name: str = "yes", suppressed: bool = False) -> dict[str, Any]:
    """A model of two classes and two attributes; 4 of 5 with ``yes`` are f, half of the others."""

    def number(value: int) -> dict[str, Any]:
        return {"value": value, "low": value - 3, "high": value + 3}

    none = {"value": None, "low": None, "high": None, "suppressed": True}
    first = none if suppressed else number(11)
    prior = {"value": [29, 59], "low": [26, 56], "high": [32, 62]}
    attributes = {
        "sex": {
            "values": ["f", "m"],
            "counts": [[number(23), number(5)], [number(29), number(29)]],
        },
        "age": {
            "values": ["[0,25)", "[25,50)", "[50,75)", "[75,100]"],
            "counts": [[first, number(-9), number(3), number(0)], [number(9)] * 4],
        },
    }
    model = {"classes": [name, "no"], "prior": prior, "attributes": attributes}
    return {"model": model, "confidence": 0.95}


def test_naive_bayes_multiplies_shares() -> None:
    model = NaiveBayes.read(answered(bayes()), PEOPLE)
    # Naive Bayes adds 1 to every noisy count. So the classes "yes" and "no" count 30 and 60, the
    # value f of sex 24 of 30 and 30 of 60, and the bin of age 3 counts 12 of 18 and 10 of 40.
    one, other = 30 / 90 * 24 / 30 * 12 / 18, 60 / 90 * 30 / 60 * 10 / 40
    row = {"sex": "f", "age": 3, "town": "a"}
    assert model.predict_proba(row)["yes"] == pytest.approx(one / (one + other))
    assert model.predict([row, {"sex": "m", "age": 30}]) == ["yes", "no"]
    assert model.predict(row) == "yes"
    with pytest.raises(ValueError, match="no value of sex"):
        model.predict({"age": 3})
    assert model.rows()[2:4] == [
        {"class": "yes", "attribute": "sex", "level": "f", "value": 23, "low": 20, "high": 26},
        {"class": "yes", "attribute": "sex", "level": "m", "value": 5, "low": 2, "high": 8},
    ]
    assert "yes 29 [26 … 32]" in str(model)


@pytest.mark.parametrize("algorithm", get_args(Algorithm))
def test_a_stored_answer_is_read_by_what_it_holds(algorithm: Algorithm, play: Play) -> None:
    is_bayes = algorithm == "naive_bayes"
    answer = bayes() if is_bayes else {"trees": [GROWN] * 2}
    described = {"name": "star", "attributes": []}
    # A query whose request leaves out the algorithm is stored without one; id3 is the default.
    body = {"kind": "tree"} if algorithm == "id3" else dict(tree(algorithm).body)
    stored = ANSWERED | {"query": body, "answer": answer}
    purse, _ = play((200, stored, {}), (200, described, {}))
    assert isinstance(purse.answer("q1"), NaiveBayes if is_bayes else Trees)


def test_suppressed_counts_of_naive_bayes_are_taken_as_none() -> None:
    model = NaiveBayes.read(answered(bayes(suppressed=True)), PEOPLE)
    one, other = 30 / 90 * 24 / 30 * 1 / 7, 60 / 90 * 30 / 60 * 10 / 40
    row = {"sex": "f", "age": 3}
    assert model.predict_proba(row)["yes"] == pytest.approx(one / (one + other))
    assert "suppressed" in model._repr_html_()


def models() -> dict[str, Classifier]:
    sure = {"label": "no", "counts": {"yes": {"value": 0}, "no": {"value": 4}}}
    return {
        "splits": Tree(ALL_SPLITS, PEOPLE),
        "grown": Tree(GROWN, PEOPLE),
        "forest": Trees.read(answered({"trees": [GROWN, sure]}), PEOPLE),
        "one": Trees.read(answered({"trees": [ALL_SPLITS]}), PEOPLE),
        "bayes": NaiveBayes.read(answered(bayes()), PEOPLE),
    }


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", models())
def test_whole_columns_give_what_single_rows_give(library: str, name: str) -> None:
    model, rows = models()[name], rows_of_people()
    if name == "grown":
        rows = [{**row, "age": "[0,50)" if row["age"] < 50 else "[50,100]"} for row in rows]
    if name == "forest":
        rows = [{"sex": row["sex"], "age": ["[0,50)", "[50,100]"][i % 2]}
                for i, row in enumerate(rows)]  # fmt: skip
    frame = import_module(library).DataFrame(rows)
    assert model.predict(frame).tolist() == model.predict(rows)
    if name in ("splits", "one"):
        with pytest.raises(ValueError, match="without counts"):
            model.predict_proba(frame)
        return
    chances = [[one[label] for label in model.labels] for one in model.predict_proba(rows)]
    assert model.predict_proba(frame) == pytest.approx(np.array(chances))
    with pytest.raises(ValueError, match="no value of sex"):
        model.predict(import_module(library).DataFrame({"town": ["a"]}))


def test_whole_columns_read_dates_missing_values_and_numbers_as_single_rows_do() -> None:
    day = Column.of({"name": "day", "kind": "date", "bins": "year", "missing": "?"})
    text = Column.of({"name": "code", "kind": "categorical", "values": ["1", "1.0"]})
    leaves = {"2023": {"label": "a"}, "2024": {"label": "b"}, "?": {"label": "c"}}
    dated = Tree({"attribute": "day", "branches": leaves}, {"day": day})
    days = pd.to_datetime(pd.Series(["2023-12-31", "2024-01-01", None]))
    assert dated.predict(pd.DataFrame({"day": days})).tolist() == ["a", "b", "c"]
    node = {"attribute": "code", "value": "1", "equal": {"label": "a"}, "other": {"label": "b"}}
    frame = pd.DataFrame({"code": pd.Series([1, 1.0, 1], dtype=object)})
    assert Tree(node, {"code": text}).predict(frame).tolist() == ["a", "b", "a"]
    nullable = pd.DataFrame({"height": pd.Series([None, 1], dtype="Int64")})
    node = {"attribute": "height", "threshold": 1.5, "below": {"label": "low"},
            "above": {"label": "high"}}  # fmt: skip
    assert Tree(node, PEOPLE).predict(nullable).tolist() == ["low", "low"]


@pytest.mark.parametrize("name", ["grown", "forest", "bayes"])
def test_scikit_learn_takes_a_released_model_for_a_fitted_classifier(name: str) -> None:
    model = models()[name]
    ages = ["[0,25)", "[75,100]"] if name == "bayes" else ["[0,50)", "[50,100]"]
    frame = pd.DataFrame({"sex": list("fmfm"), "age": [ages[i // 2] for i in range(4)]})
    actual = model.predict(frame)
    check_is_fitted(model)
    assert is_classifier(model)
    assert clone(model) is model
    assert model.fit(frame, actual[::-1]) is model
    assert model.classes_.tolist() == ["no", "yes"]
    assert get_scorer("accuracy")(model, frame, actual) == model.score(frame, actual) == 1.0
    assert get_scorer("neg_log_loss")(model, frame, ["no", "yes"] * 2) < 0
    moved = permutation_importance(model, frame, actual, n_repeats=3, random_state=0)
    assert moved.importances_mean.shape == (2,)
    assert model.get_params() == {}
    assert model.set_params() is model
    with pytest.raises(ValueError, match="no parameters"):
        model.set_params(depth=3)


def test_a_tree_draws_itself_as_the_service_does() -> None:
    for root in (GROWN, FOUND, {"label": "no"}):
        assert str(Tree(root, PEOPLE)) + "\n" == FORMATS["text"].write({"trees": [root]})
    assert (Tree(GROWN, PEOPLE).depth, Tree(GROWN, PEOPLE).leaves) == (2, 3)
    html = Trees.read(answered({"trees": [HOSTILE]}), {})._repr_html_()
    assert "<script>" not in html
    assert "<details" in html
    assert "charged ε = 0.5" in html


DISTANCES: dict[str, Any] = {
    "town": {"values": ["a", "b", "c", "?"], "context": ["sex"], "matrix": [
        [0, 0.3, 0.4, 1], [0.3, 0, 0.5, 1], [0.4, 0.5, 0, 1], [1, 1, 1, 0]]},
    "sex": {"values": ["f", "m"], "context": ["town"], "matrix": [[0, 1], [1, 0]],
            "embedding": [[0.0], [1.0]]},
}  # fmt: skip


def test_distances_are_ready_for_scikit_learn() -> None:
    distances = Distances.read(answered({"distances": DISTANCES}), PEOPLE)
    town = distances["town"]
    assert town.between("a", None) == 1
    assert town.matrix.shape == (4, 4)
    assert DBSCAN(eps=0.35, min_samples=2, metric="precomputed").fit_predict(
        town.matrix
    ).tolist() == [0, 0, -1, -1]
    rows = [{"town": "a", "sex": "f"}, {"town": "b", "sex": "m"}, {"town": "a", "sex": "f"}]
    matrix = distances.between_rows(rows)
    assert matrix.tolist() == [[0, 1.09**0.5, 0], [1.09**0.5, 0, 1.09**0.5], [0, 1.09**0.5, 0]]
    assert distances["sex"].embedding.tolist() == [[0.0], [1.0]]
    assert town.embedding is None
    assert list(distances) == ["town", "sex"]
    assert 'scope="row">b<' in distances._repr_html_()


def test_without_numpy_matrices_are_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without_numpy(name: str, *rest: Any, **more: Any) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return importing(name, *rest, **more)

    rows = [{"town": "a", "sex": "f"}, {"town": "b", "sex": "m"}]
    with_numpy = Distances.read(answered({"distances": DISTANCES}), PEOPLE)
    monkeypatch.setattr(builtins, "__import__", without_numpy)
    distances = Distances.read(answered({"distances": DISTANCES}), PEOPLE)
    assert distances["town"].matrix == DISTANCES["town"]["matrix"]
    assert distances.between_rows(rows) == with_numpy.between_rows(rows).tolist()


CLUSTERS: dict[str, Any] = {
    "centres": [[0.1, 0.0, 0.2], [0.9, 1.0, 0.7]],
    "encoding": {"kind": "learned_distance", "attributes": [
        {"name": "sex", "values": ["f", "m"], "vectors": [[0.0], [1.0]]},
        {"name": "age", "values": ["[0,25)", "[25,50)", "[50,75)", "[75,100]"],
         "vectors": [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]}]},
}  # fmt: skip


def test_records_are_assigned_to_clusters_as_documented() -> None:
    clusters = Clusters.read(answered(CLUSTERS), PEOPLE)
    rows = [{"sex": "f", "age": 3}, {"sex": "m", "age": 99}, {"sex": "m", "age": 60}]
    assert clusters.assign(rows) == [0, 1, 1]
    assert clusters.assign(rows[0]) == 0
    assert clusters.typical()[1] == {"sex": "m", "age": "[75,100]"}
    text = (ROOT / "docs/distances.md").read_text("utf-8")
    names: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("```")[0], names)
    for row in rows:
        spelled = {**row, "age": PEOPLE["age"].position(row["age"], [])}
        levels = CLUSTERS["encoding"]["attributes"][1]["values"]
        spelled["age"] = levels[spelled["age"]]
        assert names["nearest"](spelled, CLUSTERS) == clusters.assign(row)
    assert "<table>" in clusters._repr_html_()


def test_the_nearest_centre_is_euclidean_and_the_first_among_equals() -> None:
    assert nearest([0.0, 0.0], [[0.9, 0.0], [0.5, 0.5]]) == 1
    assert nearest([0.0], [[1.0], [-1.0]]) == 0


def test_numbers_are_numbers() -> None:
    value = Value.read(answered({"value": 12.5, "noise_scale": 2.0}), {})
    assert float(value) == 12.5
    assert value.noise_scale == 2.0
    assert Value.read(answered({"value": 3}), {}).noise_scale is None
    assert "12.5" in value._repr_html_()


def test_the_html_of_notebooks_escapes_every_name() -> None:
    """Names of nodes, values and attributes come from the owner of the dataset."""
    bad = "<script>alert(1)</script>"
    one = {"value": [2], "low": [1], "high": [3]}
    matrix = {"values": [bad, "b"], "context": [bad], "matrix": [[0, 1], [1, 0]]}
    named = {bad: Column(bad, values=(bad, "b"))}
    encoded = {"name": bad, "values": [bad, "b"], "vectors": [[0.0], [1.0]]}
    clusters = {"centres": [[0.0]], "encoding": {"attributes": [encoded]}}
    amounts = {"charge": {"epsilon": "1"}, "affordable": True}
    step = {"what": bad, "epsilon": "1", "times": 1, "composition": "sequential"}
    answers = [
        Selection.read(answered({"selected": bad}), {}),
        TopK.read(answered({"selected": [bad]}) | {"dataset": bad}, {}),
        TopK.read(answered({"selected": [bad], "values": one, "confidence": 0.9}), {}),
        Distances.read(answered({"distances": {bad: matrix}}), named),
        Clusters.read(answered(clusters), named),
        Trees.read(answered({"trees": [{"label": bad, "counts": {bad: 1}}]}), {}),
        NaiveBayes.read(answered(bayes(bad)), {}),
        Quote.of({**amounts, "steps": [step], "accuracy": {"explanation": bad}}),
    ]
    for answer in answers:
        html = answer._repr_html_()
        assert "&lt;script&gt;" in html
        assert "<script" not in html


def test_the_package_is_typed() -> None:
    assert (ROOT / Path("client/privypurse/py.typed")).is_file()


def test_selected_candidates_come_with_values_and_intervals() -> None:
    numbers = {"value": [7, 5.5], "low": [4, 2.5], "high": [10, 8.5]}
    released = {"selected": ["a", "b"], "ordered": True, "values": numbers, "confidence": 0.95}
    answer = TopK.read(answered(released), {})
    assert answer.values == [Interval(7, 4, 10), Interval(5.5, 2.5, 8.5)]
    assert answer.ordered
    assert answer.confidence == 0.95
    assert "4 … 10" in answer._repr_html_()
    plain = TopK.read(answered({"selected": [2, 4], "ordered": False}), {})
    assert (plain.values, plain.ordered) == (None, False)


def test_notebooks_draw_a_bar_with_its_error_bar_for_every_value() -> None:
    numbers = {"value": [8, -4, None], "low": [6, -6, None], "high": [10, -2, None]}
    released = {"selected": ["a", "b", "c"], "values": numbers, "confidence": 0.95}
    html = TopK.read(answered(released), {})._repr_html_()
    # The axis of the chart from −6 to 10 takes 320 SVG units and starts at 150. So the value 0 is
    # drawn at 270, and a difference of 1 takes 20 units.
    assert '<rect x="270.0" y="3" width="160.0"' in html
    assert '<rect x="190.0" y="21" width="80.0"' in html
    assert "M390.0 9.0H470.0" in html
    assert "M150.0 27.0H230.0" in html
    assert html.count("<rect") == 2  # a suppressed number has no bar in the chart
    assert "<svg" not in TopK.read(answered({"selected": [4, 2]}), {})._repr_html_()


def test_rows_are_those_of_a_data_frame() -> None:
    numbers = {"value": [7], "low": [4], "high": [10]}
    rows = TopK.read(answered({"selected": ["a"], "values": numbers}), {}).rows()
    assert rows == [{"selected": "a", "value": 7, "low": 4, "high": 10}]
    assert TopK.read(answered({"selected": [4, 2]}), {}).rows() == [
        {"selected": 4},
        {"selected": 2},
    ]


SHEET: dict[str, Any] = {
    "confidence": 0.95,
    "by": {"sex": ["f", "m"], "town": ["a", "b"]},
    "cells": {
        "count": {"value": [4, 5, 6, 7], "low": [1, 2, 3, 4], "high": [7, 8, 9, 10]},
        "quantile(age, 0.5)": {"value": [1.5] * 4, "low": [1.0] * 4, "high": [2.0] * 4},
    },
    "totals": [
        {
            "by": ["sex"],
            "measured": True,
            "cells": {"count": {"value": [9, 13], "low": [8, 12], "high": [10, 14]}},
        },
        {
            "by": [],
            "measured": False,
            "cells": {"count": {"value": [22], "low": [9], "high": [30]}},
        },
    ],
}


def test_a_table_is_read_by_its_groups() -> None:
    table = Table.read(answered(SHEET), {})
    assert table.rows()[2] == {
        "sex": "m",
        "town": "a",
        "count": {"value": 6, "low": 3, "high": 9},
        "quantile(age, 0.5)": {"value": 1.5, "low": 1.0, "high": 2.0},
    }
    assert table.total("sex").columns["count"]["value"] == [9, 13]
    assert table.total("sex").measured
    assert table.total().rows() == [{"count": {"value": 22, "low": 9, "high": 30}}]
    with pytest.raises(KeyError):
        table.total("town")
    arrow = table.to_arrow()
    assert arrow.column_names[:3] == ["sex", "town", "count.value"]
    assert arrow.to_pydict()["town"] == ["a", "b", "a", "b"]
    text = table._repr_html_()
    assert "<td>3 … 9</td>" in text
    assert "95%" in text


def test_long_tables_are_cut_in_notebooks_alone() -> None:
    labels = [str(i) for i in range(300)]
    column = {"value": labels, "low": labels, "high": labels}
    numbers = {part: [float(one) for one in values] for part, values in column.items()}
    sheet = Sheet({"n": labels}, {"count": numbers})
    assert "200 more rows" in sheet._repr_html_()
    assert len(sheet.rows()) == 300


def test_an_attribute_named_as_a_column_of_numbers_keeps_its_own_column() -> None:
    numbers = {"value": [1.0, 2.0], "low": [0.0, 1.0], "high": [2.0, 3.0]}
    sheet = Sheet({"count.value": ["a", "b"], "by.count.low": ["c"]}, {"count": numbers})
    arrow = sheet.to_arrow().to_pydict()
    assert arrow["by.count.value"] == ["a", "b"]
    assert arrow["count.value"] == [1.0, 2.0]
    assert arrow["by.count.low"] == ["c", "c"]


class Frame:
    """A data frame as far as ``to_pandas`` uses it."""

    def __init__(self, names: list[str]) -> None:
        self.index: list[str] = []
        self.columns: Any = self
        self.str, self.names = self, names

    def set_index(self, names: list[str]) -> Frame:
        self.index, self.names = names, [name for name in self.names if name not in names]
        return self

    def rsplit(self, mark: str, *, n: int, expand: bool) -> list[tuple[str, ...]]:
        assert expand
        return [tuple(name.rsplit(mark, n)) for name in self.names]


def test_a_data_frame_has_groups_as_index_and_two_levels_of_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pandas is not installed here; the frame is made by Arrow, which needs it."""
    table = Table.read(answered(SHEET), {})
    names = table.to_arrow().column_names
    arrow = type("Arrow", (), {"to_pandas": lambda _: Frame(names)})
    monkeypatch.setattr(Sheet, "to_arrow", lambda _: arrow())
    frame = table.to_pandas()
    assert frame.index == ["sex", "town"]
    assert frame.columns[0] == ("count", "value")
    assert frame.columns[-1] == ("quantile(age, 0.5)", "high")
