"""Windows of a real Chromium that collect what is wrong with the pages in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.architecture.imports import ROOT

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
NEEDS_CHROMIUM = [
    pytest.mark.skipif(not CHROMIUM, reason="needs chromium: apt-get install chromium"),
    pytest.mark.slow,
]

#: The folder for screenshots of the documentation: ``PURSE_SCREENSHOTS=docs/screenshots pytest …``.
#: Without it no screenshot is taken.
PICTURES = os.environ.get("PURSE_SCREENSHOTS")


@dataclass
class Window:
    """A browser page with cookies of its own, on the service at ``url``."""

    page: Any
    url: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(self.url + path)

    def sign_in(self, key: str) -> None:
        self.go("/ui/sign-in")
        self.page.get_by_label("Your key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "sign-in" not in url)

    def is_fit(self) -> list[str]:
        """Returns the faults of the current page; none if it is fit."""
        faults = [f"console: {error}" for error in self.errors]
        faults += [f"request: {address}" for address in self.elsewhere]
        wide = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        if wide[0] > wide[1]:
            faults.append(f"{wide[0]} px wide in {wide[1]}")
        report = axe.Axe().run(self.page)
        if report.violations_count:
            faults.append(report.generate_report())
        self.errors.clear()
        return faults

    @contextmanager
    def without_errors(self) -> Iterator[None]:
        """The steps inside write no error and ask no other host."""
        self.errors.clear()
        yield
        assert self.errors == [], self.errors
        assert self.elsewhere == []

    def picture(self, name: str) -> None:
        if PICTURES:
            folder = ROOT / PICTURES
            folder.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=folder / f"{name}.png", full_page=True)


Open = Callable[..., Window]


class Chromium:
    """The running browser."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    @contextmanager
    def windows(self, *urls: str) -> Iterator[Open]:
        """Opens windows on the first address; requests to all of these are expected."""
        contexts = []

        def open_one(width: int = 1280, **options: Any) -> Window:
            context = self._browser.new_context(viewport={"width": width, "height": 800}, **options)
            contexts.append(context)
            page = context.new_page()
            page.set_default_timeout(90_000)
            window = Window(page, urls[0])
            page.on(
                "console",
                lambda m: m.type in ("error", "warning") and window.errors.append(m.text),
            )
            page.on("pageerror", lambda error: window.errors.append(str(error)))
            page.on(
                "request",
                lambda r: r.url.startswith((*urls, "data:")) or window.elsewhere.append(r.url),
            )
            return window

        yield open_one
        for context in contexts:
            context.close()


@contextmanager
def chromium() -> Iterator[Chromium]:
    """A browser that ends with the context."""
    with sync_api.sync_playwright() as playwright:
        # The containers of the tests run as root, for which Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Chromium(browser)
        browser.close()
