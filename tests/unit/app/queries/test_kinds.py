"""What every kind states about itself holds: its examples, forms, labels and drawings."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from app.contract.datasets import AttributeFacts, Facts
from app.dashboard.builder import build
from app.dashboard.forms import Form
from app.dashboard.templating import ENVIRONMENT
from app.engine.requests import QueryRequest, QuoteRequest
from app.queries import QUERY, QUERY_KINDS, Kind, example_reply
from app.queries.parts.examples import DATASETS, reply
from app.service.warm import stored_types
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.records import GraphRecords
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness

KINDS = list(QUERY_KINDS.values())
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
FACTS = {
    "graph": Facts("g", "graph", "edge"),
    "table": Facts(
        "t",
        "table",
        "add_remove",
        (AttributeFacts("sex", ("f", "m"), None), AttributeFacts("age", (), (0.0, 120.0))),
        "sex",
    ),
    "prefix": Facts("p", "prefix", "prefix"),
}
#: A table with an open attribute, whose values are not listed in its description. Some forms have
#: one more field for it.
OPEN = Facts(
    "o",
    "table",
    "add_remove",
    (*FACTS["table"].attributes, AttributeFacts("code", (), None, is_open=True)),
    "sex",
)


@EACH
def test_every_request_is_valid_fits_its_dataset_and_is_of_the_kind(kind: Kind) -> None:
    requests = [kind.examples.request, *(one.request for one in kind.examples.queries.values())]
    for request in requests:
        body = QueryRequest.model_validate_json(json.dumps(request))
        assert body.query.name == kind.name
        assert body.query.price(DATASETS[body.dataset], body.loss).total() == body.loss
    for example in kind.examples.quotes.values():
        quote = QuoteRequest.model_validate_json(json.dumps(example.request))
        public = DATASETS[quote.dataset]
        loss = (
            PrivacyLoss(quote.epsilon)
            if quote.epsilon is not None
            else quote.query.loss_reaching(public, quote.target or {})
        )
        assert quote.query.price(public, loss).total() == loss


@EACH
def test_no_default_takes_gaussian_noise(kind: Kind) -> None:
    """Danger: one such charge closes the way by ε. A body that names ε has a finite one."""
    requests = [kind.examples.request, *(one.request for one in kind.examples.queries.values())]
    for request in requests:
        if "rho" in request:
            continue
        body = QueryRequest.model_validate_json(json.dumps(request))
        for query in (body.query, body.query.in_rho()):
            charge = query.price(DATASETS[body.dataset], body.loss).charge()
            assert not charge.unpriced
            assert charge.epsilon_nano == body.loss.epsilon_nano


@EACH
def test_a_table_without_numbers_has_valid_examples(kind: Kind) -> None:
    """Its price may refuse some of them: then agents get the next."""
    attributes = [CategoricalAttribute(name, ("a", "b")) for name in ("class", "colour")]
    domain = TableDomain(tuple(attributes), class_attribute="class", max_rows=16)
    dataset = Dataset("words", NeighbouringRelation.ADD_REMOVE, domain)
    for body in kind.examples.every(dataset):
        assert QUERY.validate_json(json.dumps(body)).name == kind.name


@EACH
def test_the_examples_of_a_stored_type_fit_it(kind: Kind) -> None:
    """And every kind has some; the warm-up computes them all."""
    bodies = [
        (QUERY.validate_json(json.dumps(body)), dataset)
        for _, dataset in stored_types()
        for body in kind.examples.every(dataset)
    ]
    assert bodies
    for query, dataset in bodies:
        loss = PrivacyLoss(10**12, query.delta_atto())
        assert query.name == kind.name
        assert query.price(dataset, loss).total() == loss


class Page(HTMLParser):
    """Counts what is open and keeps the text."""

    EMPTY = frozenset({"rect", "path", "td", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        assert tag in self.EMPTY

    def handle_data(self, data: str) -> None:
        self.text += data


@EACH
def test_the_example_of_an_answer_is_drawn(kind: Kind) -> None:
    answer = kind.examples.answer
    template = ENVIRONMENT.get_template(f"{kind.name}/answer.html")
    page = Page()
    page.feed(template.render(answer=answer, drawing=kind.draw(answer)))
    assert page.open == []
    assert page.text.strip()
    for form in kind.formats.values():
        assert form.write(answer).strip()


def test_the_example_of_a_reply_is_priced_as_the_service_does() -> None:
    text = example_reply()
    first = KINDS[0]
    assert text["query"] == first.examples.request["query"]
    assert text["answer"].items() >= first.examples.answer.items()
    for kind in KINDS:
        request = QueryRequest.model_validate_json(json.dumps(kind.examples.request))
        whole = reply(request.query, kind.examples.request, kind.examples.answer)
        assert whole.keys() == text.keys()
        assert whole["charge"]["epsilon"] == kind.examples.request["epsilon"]


@EACH
def test_histories_and_lists_name_a_stored_query(kind: Kind) -> None:
    for request in [
        kind.examples.request,
        *(one.request for one in kind.examples.queries.values()),
    ]:
        body = QueryRequest.model_validate_json(json.dumps(request))
        stored = json.loads(body.canonical)["query"]
        relation = DATASETS[body.dataset].neighbouring
        assert kind.how(stored, relation).startswith(f"{kind.name}: ")
        assert kind.label(stored).startswith(kind.name.replace("_", " "))


def test_what_a_history_shows_is_what_it_showed_before_kinds_were_folders() -> None:
    stored = {
        "selection": ({"selector": "exponential", "sensitivity": "local"}, "exponential: local"),
        "top_k": ({"selector": "exponential", "sensitivity": "local"}, "exponential: local"),
        "tree": (
            {"algorithm": "id3", "selector": "exponential", "sensitivity": "local"},
            "id3: exponential: local",
        ),
        "distance": ({"context": "mean_su", "sensitivity": "local"}, "mean_su: local"),
        "clustering": ({"encoding": "one_hot"}, "one_hot"),
        "table": ({"aggregates": [{"name": "count"}, {"name": "mean"}]}, "count, mean"),
        "statistic": ({"statistic": "edges", "mechanism": None, "delta": "0"}, "laplace"),
    }
    assert stored.keys() == QUERY_KINDS.keys()
    for name, (query, how) in stored.items():
        kind = QUERY_KINDS[name]
        assert kind.how(query, NeighbouringRelation.EDGE) == f"{name}: {how}"
    assert QUERY_KINDS["statistic"].label({"statistic": "two_triangles"}) == (
        "statistic: two triangles"
    )
    assert QUERY_KINDS["top_k"].label({}) == "top k"


def test_a_history_names_no_selector_of_a_forest_that_selects_nothing() -> None:
    forest = {"algorithm": "forest", "splits": "random", "selector": "permute_and_flip"}
    how, relation = QUERY_KINDS["tree"].how, NeighbouringRelation.ADD_REMOVE
    assert how(forest, relation) == "tree: forest: random"
    private = forest | {"splits": "private"}
    assert how(private, relation) == "tree: forest: private: permute_and_flip"


def test_algorithms_of_counts_take_rho_and_those_of_rates_do_not() -> None:
    form = QUERY_KINDS["tree"].form
    taken = {name for name in form.bodies if form.gaussian(name)}
    assert taken == {"id3", "forest", "naive_bayes"}
    assert not QUERY_KINDS["statistic"].form.gaussian("")


@EACH
def test_a_form_asks_for_every_parameter_once_and_a_body_reads_it(kind: Kind) -> None:
    fitting = [facts for facts in (*FACTS.values(), OPEN) if kind.form.fits(facts)]
    assert fitting
    names = set()
    for facts in fitting:
        for variant in kind.form.variants(facts) or (None,):
            chosen = "" if variant is None else variant.value
            fields = [one.name for one in kind.form.fields(facts, chosen)]
            assert len(fields) == len(set(fields))
            names |= {one.partition(".")[0] for one in fields} | kind.form.start(chosen).keys()
            assert kind.form.targets(chosen)
            page = build(facts, kind.name, chosen, Form({}))
            assert (page.kind, page.variant.value) == (kind, chosen)
            assert [control.name for control in page.controls] == fields
    assert names == kind.body.catalogue()["parameters"].keys()
    assert kind.body.catalogue()["rho"] is kind.body.gaussian


def test_arguments_of_the_client_are_parameters() -> None:
    for kind in KINDS:
        assert {*kind.arguments} <= kind.body.catalogue()["parameters"].keys()


def test_no_query_of_a_graph_reads_its_edges() -> None:
    """An upload prepares columns and totals, so that no query looks through all neighbours."""
    tried = 0
    for records, dataset in stored_types():
        if not isinstance(records, GraphRecords):
            continue
        rows, edges = np.zeros_like(records.indptr), np.zeros_like(records.indices)
        without = replace(records, indptr=rows, indices=edges)
        for kind in KINDS:
            for body in kind.examples.every(dataset):
                query = QUERY.validate_json(json.dumps(body))
                loss = PrivacyLoss(10**9, query.delta_atto())
                one, other = (
                    query.compute(context(each, dataset, loss, SeededRandomness(1)))
                    for each in (records, without)
                )
                assert one == other, body
                tried += 1
    assert tried > 10
