"""The handbook: the glossary and the pages of ``docs`` as HTML, and a search through both.

The pages are the service's own files and the renderer escapes all HTML in them, so a page holds no
script. The renderer is imported with the first page, because most processes never show one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from app.dashboard.glossary import GLOSSARY
from storage.errors import NotFound

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

DOCS = Path(__file__).parents[2] / "docs"
HELP = "/ui/help"
#: The groups of the list of contents, and the pages of each.
CONTENTS = {
    "Begin": (
        "words",
        "tutorial_analyst",
        "tutorial_owner",
        "tutorial_auditor",
        "tutorial_operator",
    ),
    "Work": ("dashboard", "datasets", "sources", "client", "command_line", "agents", "problems"),
    "Questions": ("mechanisms", "tables", "statistics", "trees", "distances"),
    "Promises": ("privacy", "ledger", "threat_model", "reproduction"),
    "Run the service": ("operating", "performance", "identity", "backup", "upgrading"),
}
PAGES = frozenset(name for names in CONTENTS.values() for name in names)
#: The page of the glossary, which is no file.
WORDS = "words"
#: The most sections that one search shows, and the characters around the first match in each.
MOST_MATCHES = 30
SNIPPET = 180


@dataclass(frozen=True)
class Section:
    """A heading of a page, and the plain text below it up to the next heading."""

    page: str
    title: str
    level: int
    anchor: str
    text: str

    @property
    def path(self) -> str:
        return f"{HELP}/{self.page}" + (f"#{self.anchor}" if self.level > 1 else "")


@dataclass(frozen=True)
class HandbookPage:
    """One page: its title, its body as HTML, and its sections in order."""

    title: str
    body: Markup
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Match:
    """A section that a search found, with a part of its text around the first match."""

    section: Section
    page_title: str
    snippet: Markup


@cache
def page(name: str) -> HandbookPage:
    """The page of this name. Raises: NotFound if the handbook has no such page."""
    if name not in PAGES:
        raise NotFound
    renderer = _renderer()
    text = _glossary() if name == WORDS else (DOCS / f"{name}.md").read_text("utf-8")
    tokens = renderer.parse(text)
    sections = tuple(_sections(name, tokens))
    for token in tokens:
        _adapt(token.children or [])
    anchors = iter(sections)
    for token in tokens:
        if token.type == "heading_open":
            token.attrSet("id", next(anchors).anchor)
    html = renderer.renderer.render(tokens, renderer.options, {})
    return HandbookPage(sections[0].title, Markup(_scrollable(html)), sections)


def search(text: str) -> list[Match]:
    """The sections that have every word of ``text``; none for a text without words.

    Explanations of words come first, then titles that have the words, then texts that repeat them.
    """
    words = text.casefold().split()
    if not words:
        return []
    ranked = []
    for name in sorted(PAGES):
        for section in page(name).sections:
            title, body = section.title.casefold(), section.text.casefold()
            if all(word in title or word in body for word in words):
                in_title = sum(word in title for word in words)
                repeated = sum(body.count(word) for word in words)
                ranked.append(((name != WORDS, -in_title, -repeated), section))
    ranked.sort(key=lambda one: one[0])
    return [
        Match(section, page(section.page).title, _snippet(section.text, words))
        for _, section in ranked[:MOST_MATCHES]
    ]


def contents() -> dict[str, list[tuple[str, str]]]:
    """The pages by group: the name and the title of each."""
    return {
        group: [(name, page(name).title) for name in names] for group, names in CONTENTS.items()
    }


def _glossary() -> str:
    """The glossary as a document: each term is a section with a link to the page that has more."""
    terms = []
    for term in GLOSSARY:
        name, _, anchor = term.page.partition("#")
        more = f"{name}.md#{anchor}" if anchor else f"{name}.md"
        terms.append(f"## {term.question}\n\n{term.answer} [More]({more})\n")
    return "\n".join(["# Words\n", *terms])


def slug(title: str) -> str:
    """The anchor of a heading, as repositories on the web make it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _sections(name: str, tokens: list[Token]) -> Iterator[Section]:
    title, level, texts = "", 0, list[str]()
    counts = Counter[str]()

    def section() -> Section:
        # Repeated headings get numbered anchors, as on GitHub, so that one link works in both
        # places.
        anchor = slug(title)
        counts[anchor] += 1
        if counts[anchor] > 1:
            anchor += f"-{counts[anchor] - 1}"
        return Section(name, title, level, anchor, " ".join(texts))

    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            if level:
                yield section()
            title, level, texts = _plain(tokens[number + 1]), int(token.tag[1:]), []
        elif token.type == "fence" or token.type == "code_block":
            texts.append(token.content)
        elif token.type == "inline" and tokens[number - 1].type != "heading_open":
            texts.append(_plain(token))
    yield section()


def _plain(inline: Token) -> str:
    """The text of an inline token without marks; pictures have none."""
    parts = ("\n" if one.type == "softbreak" else one.content for one in inline.children or ())
    return "".join(parts).replace("\n", " ")


def _adapt(children: list[Token]) -> None:
    """Point links to pages of the handbook, and drop pictures and links to other files."""
    # Pictures show the dashboard, which readers of the handbook have open, so they are dropped.
    children[:] = [one for one in children if one.type != "image"]
    opened: list[Token] = []
    for token in children:
        if token.type == "link_open":
            opened.append(token)
            target = str(token.attrGet("href"))
            match = re.fullmatch(r"(\w+)\.md(#.*)?", target)
            if match and match[1] in PAGES:
                token.attrSet("href", f"{HELP}/{match[1]}{match[2] or ''}")
            elif not re.match(r"#|https?://", target):
                token.tag, token.attrs = "span", {}
        elif token.type == "link_close":
            token.tag = opened.pop().tag


def _scrollable(html: str) -> str:
    """Tables and code scroll within the page, also by keyboard; an empty paragraph goes."""
    count = iter(range(1, 1000))
    # The text of a page cannot contain the tags that are replaced here, because the renderer
    # escapes it. So only tags that the renderer wrote are replaced.
    frame = '<div class="scroll" tabindex="0" role="region" aria-label="Table {}"><table>'
    html = re.sub("<table>", lambda _: frame.format(next(count)), html)
    html = html.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
    # A screen reader announces an empty header cell as a heading without words, so it becomes a
    # plain cell.
    html = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)
    return re.sub(r"<p>\s*</p>\n", "", html)


def _snippet(text: str, words: list[str]) -> Markup:
    """The text around the first match, with all matches marked."""
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    first = pattern.search(text)
    start = max(0, (first.start() if first else 0) - SNIPPET // 3)
    part = text[start : start + SNIPPET]
    marked, end = Markup("…" if start else ""), 0
    for match in pattern.finditer(part):
        marked += escape(part[end : match.start()]) + Markup("<mark>{}</mark>").format(match[0])
        end = match.end()
    return marked + escape(part[end:]) + ("…" if start + SNIPPET < len(text) else "")
