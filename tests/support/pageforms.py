"""The forms of a page as a browser without script would send them untouched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class PageForm:
    """A form's target and fields; a select without a selected option has its first one."""

    action: str
    method: str
    fields: dict[str, list[str]] = field(default_factory=dict)

    def put(self, name: str, *values: str) -> None:
        self.fields[name] = list(values)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self._form: PageForm | None = None
        self._select: str | None = None
        self._multiple = False
        self._options: list[tuple[str | None, bool]] = []
        self._text: list[str] | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        a = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = PageForm(a.get("action", ""), a.get("method", "get"))
            self.forms.append(self._form)
        if self._form is None:
            return
        kind = a.get("type", "text")
        checked = kind not in ("checkbox", "radio") or "checked" in a
        if tag == "input" and a.get("name") and checked and kind != "file":
            self._form.fields.setdefault(a["name"], []).append(a.get("value", ""))
        elif tag == "select":
            self._select, self._multiple, self._options = a["name"], "multiple" in a, []
        elif tag == "option":
            self._options.append((a.get("value"), "selected" in a))
            self._text = []
        elif tag == "textarea":
            self._area, self._text = a["name"], []

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "option" and self._options:
            value, selected = self._options[-1]
            text = "".join(self._text or [])
            self._options[-1] = (text if value is None else value, selected)
            self._text = None
        elif tag == "select" and self._form is not None and self._select is not None:
            chosen = [str(value) for value, selected in self._options if selected]
            if not chosen and self._options and not self._multiple:
                chosen = [str(self._options[0][0])]
            if chosen:
                self._form.fields.setdefault(self._select, []).extend(chosen)
            self._select = None
        elif tag == "textarea" and self._form is not None and self._area is not None:
            self._form.fields.setdefault(self._area, []).append("".join(self._text or []))
            self._area = self._text = None
        elif tag == "form":
            self._form = None


def forms(page: str) -> dict[str, PageForm]:
    """The forms of a page by method and action (``POST /ui/keys``); the last of equal ones wins."""
    reader = _Reader()
    reader.feed(page)
    return {f"{form.method.upper()} {form.action}": form for form in reader.forms}


def options(page: str, name: str) -> list[str]:
    """The values that a choice of the page offers."""
    match = re.search(rf'<select[^>]*name="{name}"[^>]*>(.*?)</select>', page, re.S)
    if match is None:
        return []
    return re.findall(r'<option value="([^"]*)"', match[1])
