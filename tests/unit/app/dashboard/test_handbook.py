"""The handbook shows and searches the documents; the glossary explains the words of forms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest

from app.dashboard import handbook
from app.dashboard.glossary import GLOSSARY, terms_of
from app.dashboard.handbook import DOCS, HELP, PAGES
from storage.errors import NotFound
from tests.support.browser import Browser, SignIn, words
from tests.support.pageforms import options
from tests.support.service import Service
from tests.unit.app.dashboard.test_ask import ROWS, TABLE

#: Labels of form fields in plain words, which no glossary needs to explain.
PLAIN = {
    "Analyst", "Days back", "Dataset", "Entries", "First", "from", "Kind", "Name", "Number or date",
    "of at most", "Question", "Reason, for the analyst", "Roles", "These values", "to below",
    "Until this day (UTC)", "What it is for", "Works before this day (UTC)", "What to spend",
    "Only these datasets (none chosen: all)", "Groups as JSON", "Measures as JSON",
    "Condition as JSON", "Search the handbook", "The dataset", "What it is about", "Nodes",
    "What all analysts may learn together", "What privacy hides", "Number of nodes", "Public list",
    "Suppress noisy counts below", "Without an end",
}  # fmt: skip


def test_every_document_is_a_page_of_the_handbook() -> None:
    assert {path.stem for path in DOCS.glob("*.md")} | {handbook.WORDS} == PAGES
    listed = [name for names in handbook.CONTENTS.values() for name in names]
    assert len(listed) == len(PAGES)


class Anchors(HTMLParser):
    """The anchors, links and levels of headings of a page."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.titles: list[str] = []
        self.feed(body)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert tag not in {"img", "script", "style", "iframe"}
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if tag == "a":
            self.links.append(str(named["href"]))
        if re.fullmatch(r"h\d", tag):
            self.titles.append(tag)


def test_links_and_anchors_of_all_pages_lead_somewhere() -> None:
    read = {name: Anchors(str(handbook.page(name).body)) for name in PAGES}
    for name, one in read.items():
        assert one.titles.count("h1") == 1, name
        assert len(set(one.ids)) == len(one.ids), name
        for link in one.links:
            match = re.fullmatch(rf"(?:{HELP}/(\w+))?(?:#(.+))?", link)
            assert match or link.startswith(("https://", "http://")), (name, link)
            if match and match[2]:
                assert unquote(match[2]) in read[match[1] or name].ids, (name, link)
    for term in GLOSSARY:
        target, _, anchor = term.page.partition("#")
        assert not anchor or anchor in read[target].ids, term.page


def test_html_of_a_document_is_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(handbook, "DOCS", tmp_path)
    hostile = "# A\n\n<script>x</script> [b](javascript:alert(1)) [c](data:text/html,x) <table>\n"
    (tmp_path / "agents.md").write_text(hostile)
    body = str(handbook.page.__wrapped__("agents").body)
    assert "<script" not in body
    assert "<table" not in body
    assert "href" not in body
    with pytest.raises(NotFound):
        handbook.page("../README")


def test_the_search_needs_every_word_and_marks_it() -> None:
    matches = handbook.search("PUrse_metrics_token")
    assert matches
    assert all("purse_metrics_token" in one.section.text.casefold() for one in matches)
    assert "<mark>purse_metrics_token</mark>" in str(matches[0].snippet).casefold()
    assert handbook.search("gaussian noise")[0].section.title.lower().count("gaussian") == 1
    assert handbook.search("gaussian xyzzy") == []
    assert handbook.search("  ") == []
    assert len(handbook.search("a")) == handbook.MOST_MATCHES
    assert "<script>" not in "".join(str(one.snippet) for one in handbook.search("<"))


@pytest.mark.parametrize("word", ["ε", "epsilon", "Delta", "ρ", "cap"])
def test_a_search_for_a_technical_word_begins_with_its_explanation(word: str) -> None:
    first = handbook.search(word)[0].section
    assert first.page == handbook.WORDS
    assert word.casefold() in (first.title + first.text).casefold()
    if word in "ερ":
        assert first.title == f"What is {word}?"


def test_pages_and_search_of_the_handbook(sign_in: SignIn) -> None:
    browser = sign_in("otto")
    assert "Threat model" in browser.text(HELP)
    assert "a factor of e^ε" in browser.text(f"{HELP}/privacy")
    assert "What is ε?" in browser.text(f"{HELP}/words")
    assert "The first 30 sections with “epsilon”" in browser.text(HELP, q="epsilon")
    assert "No sections with “<b>”" in browser.text(HELP, q="<b>")
    assert "Neighbouring relations" in browser.text(HELP, q="neighbouring relation")
    assert browser.get(f"{HELP}/nothing").status_code == 404


def test_odds_of_the_glossary_follow_from_epsilon() -> None:
    answer = terms_of("ε")[0].answer
    stated = dict(re.findall(r"ε ([\d.]+) (?:together, .*? )?at most (\d+)", answer))
    assert stated == {
        epsilon: str(math.ceil(100 / (1 + math.exp(-float(epsilon)))))
        for epsilon in ("0.1", "1", "3")
    }


def labels_of(page: str) -> set[str]:
    """The labels and legends of fields, without those of single check boxes and searches."""
    page = re.sub(r'<form[^>]*role="search".*?</form>', "", page, flags=re.S)
    page = re.sub(r'<div class="row"><label class="check">.*?</div></div>', "", page, flags=re.S)
    marked = r'<(label|legend)(?! class="(?:check|hide)")[^>]*>(.*?)</\1>'
    return {words(text) for _, text in re.findall(marked, page, re.S)}


def pages_of_questions(browser: Browser, dataset: str) -> Iterator[tuple[str, str]]:
    """The form of every variant of every kind of query, by its name."""
    for kind in options(browser.get("/ui/ask", dataset=dataset).text, "kind"):
        page = browser.get("/ui/ask", dataset=dataset, kind=kind).text
        for form in options(page, "form") or [""]:
            chosen = {"dataset": dataset, "kind": kind, "form": form}
            yield f"{kind} {form}", browser.get("/ui/ask", **chosen).text


def test_every_technical_word_of_a_form_is_explained_beside_it(
    people: Service, sign_in: SignIn
) -> None:
    cap = {"epsilon": "9", "delta": "0.01", "gaussian": True, "composition_delta": "0.000001"}
    people.dataset("olga", name="web", cap=cap)
    assert people("olga", "POST", "/v1/datasets", json=TABLE).status_code == 201
    assert people.upload("olga", TABLE["name"], ROWS.encode()).status_code == 201
    for name in ("web", TABLE["name"]):
        limit = {"epsilon": "1", "delta": "0.001"}
        people("olga", "PUT", f"/v1/datasets/{name}/budgets/ana", json=limit)
    pages = [
        *(("olga", f"/ui/register?kind={kind}") for kind in ("table", "graph", "prefix")),
        ("olga", "/ui/grants/web"), ("ana", "/ui/datasets/web/requests"),
        ("ana", "/ui/keys"), ("ada", "/ui/users/ana"),
    ]  # fmt: skip
    read = [(path, sign_in(who).get(path).text) for who, path in pages]
    ana = sign_in("ana")
    read += [one for name in ("web", TABLE["name"]) for one in pages_of_questions(ana, name)]
    explained = 0
    for path, page in read:
        for label in labels_of(page) - PLAIN:
            terms = terms_of(label)
            assert terms, (path, label)
            for term in terms:
                assert f"<summary>{term.question}</summary>" in page, (path, label)
                explained += 1
    assert explained > 100
