"""The documents name what the code has, no more and no less."""

from __future__ import annotations

import re

import pytest
from pydantic import TypeAdapter

from app.config.settings import Settings
from app.contract.attributes import AttributeIn
from app.contract.problems import BY_SLUG
from app.engine.requests import QueryRequest
from app.queries import AnyQuery
from app.queries.parts.candidates import CANDIDATES
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import OBJECTIVES
from mechanisms.selection import JOINT_SELECTORS, SELECTORS
from mechanisms.selection.automatic import RULES
from mechanisms.utilities import UTILITIES
from tests.architecture.imports import ROOT


def test_every_problem_is_documented_with_its_status() -> None:
    text = (ROOT / "docs/problems.md").read_text("utf-8")
    documented = dict(re.findall(r"^### ([\w-]+)\n\n(\d{3})", text, re.MULTILINE))
    assert documented == {slug: str(kind.status) for slug, kind in BY_SLUG.items()}


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/operating.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert documented == {f"PURSE_{name.upper()}" for name in Settings.model_fields}


def test_every_part_of_a_selection_is_documented() -> None:
    text = (ROOT / "docs/mechanisms.md").read_text("utf-8")
    sections = {
        part.partition("\n")[0]: re.findall(r"^### `(\w+)`$", part, re.MULTILINE)
        for part in re.split(r"^## ", text, flags=re.MULTILINE)
    }
    assert sorted(sections["Utilities"]) == sorted(UTILITIES)
    assert sorted(sections["Objectives"]) == sorted(OBJECTIVES)
    assert sections["Sensitivities"] == [str(name) for name in Sensitivity]
    assert sorted(sections["Selectors"]) == sorted([*SELECTORS, *JOINT_SELECTORS])
    for row in RULES:
        sums = row.ranking.replace("weighted_sum of", "weighted sums of")
        assert f"`{row.ranking}`" in text or sums in text
    for body, _ in CANDIDATES.values():
        assert any(f'"{member}":' in text for member in body.model_fields)


@pytest.mark.parametrize("page", ["distances", "mechanisms", "statistics", "tables", "trees"])
def test_queries_in_documents_are_valid(page: str) -> None:
    text = (ROOT / f"docs/{page}.md").read_text("utf-8")
    blocks = re.findall(r"```json\n(?:POST \S+\n)?(.*?)```", text, re.DOTALL)
    bodies = [one for block in blocks for one in re.split(r"\n(?=\{)", block) if '"kind"' in one]
    assert bodies
    for body in bodies:
        form = QueryRequest if '"dataset"' in body else AnyQuery
        TypeAdapter(form).validate_json(body)


def test_attributes_in_documents_are_valid() -> None:
    text = (ROOT / "docs/datasets.md").read_text("utf-8")
    blocks = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        TypeAdapter(AttributeIn | list[AttributeIn]).validate_json(block)


def test_links_between_documents_lead_somewhere() -> None:
    link = re.compile(r"\]\(((?:[\w.-]+/)*[\w.-]+\.md)(?:#([\w-]+))?\)")
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        for target, anchor in link.findall(path.read_text("utf-8")):
            text = (path.parent / target).read_text("utf-8")
            titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert not anchor or anchor in anchors


def test_every_erratum_of_privacy_names_its_counterexample() -> None:
    """Rows: the place, the formula, an example, what follows, what is done here."""
    text = (ROOT / "docs/privacy.md").read_text("utf-8")
    table = text.partition("| place |")[2].partition("\n\n")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()[2:]]
    assert len(rows) >= 19
    assert all(len(row) == 5 and all(cell.strip() for cell in row) for row in rows)
    places = " ".join(row[0] for row in rows)
    for place in ("Lemma 3.5", "Definition 3.6", "Definition 3.8", "Definition 4.3", "Lemma 5.2",
                  "Definition 5.3", "equation 2", "Algorithm 3", "Algorithm 2", "Definition 4.5",
                  "section 6.2.3", "Lemma 6.1", "Lemma 7.2", "MO Algorithm 1"):  # fmt: skip
        assert place in places
