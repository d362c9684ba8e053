"""Every page of every role in a real browser: light and dark, wide and narrow, also without script.

A page fails if axe finds a violation, the console has an error, the page requests another host,
or its content is wider than the window.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.demo.service import ServiceProcess
from privypurse import CertificateInvalid, verify_certificate
from tests.architecture.imports import ROOT
from tests.process.session import CERTIFICATES
from tests.process.windows import NEEDS_CHROMIUM, PICTURES, Chromium, Open, Window, chromium
from tests.support.data import FOLDER
from tests.support.patience import REPLY
from tests.support.schemas import RealTable

pytestmark = NEEDS_CHROMIUM

ADULT: dict[str, Any] = {
    "name": "adult",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 1000,
    "attributes": [
        {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
        {
            "name": "work",
            "kind": "categorical",
            "values": ["Clerical", "Craft", "Executive", "Farming", "Sales", "Service"],
        },
        {
            "name": "education",
            "kind": "categorical",
            "values": ["Primary", "Secondary", "Bachelor", "Master", "Doctorate"],
        },
        {"name": "age", "kind": "numeric", "bounds": [0, 120], "bins": 6},
        {"name": "income", "kind": "categorical", "values": ["<=50K", ">50K"]},
    ],
    "class_attribute": "income",
    "cap": {"epsilon": "200", "delta": "0"},
    "description": "made up for these pages",
}


def adult(count: int = 400) -> str:
    """Synthetic records in which education and executive jobs raise the income."""
    work = ADULT["attributes"][1]["values"]
    education = ADULT["attributes"][2]["values"]
    lines = ["sex,work,education,age,income"]
    for i in range(count):
        learned, job = i * 7 % 5, (i * 7 % 5 + i % 3) % 6
        rich = learned >= 3 or (job == 2 and i % 4 > 0)
        lines.append(
            f"{'Male' if i % 2 else 'Female'},{work[job]},{education[learned]},"
            f"{20 + i * 13 % 60},{'>50K' if rich else '<=50K'}"
        )
    return "\n".join(lines) + "\n"


def owners_table() -> tuple[dict[str, Any], bytes]:
    """Description and records of the real adult table if present, else of the synthetic one."""
    if not (FOLDER / "adult.csv.gz").is_file():
        return ADULT, adult().encode()
    real = RealTable.read("adult")
    described = real.registration("add_remove") | {"cap": ADULT["cap"]}
    return described, gzip.decompress(real.content)


@dataclass
class Shop:
    """A running service with users of every role and content on each of their pages."""

    url: str
    keys: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    def ok(self, who: str, method: str, path: str, **sent: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.keys[who]}", **sent.pop("headers", {})}
        reply = httpx.request(
            method,
            self.url + path,
            headers=headers,
            timeout=REPLY,
            verify=CERTIFICATES,
            **sent,
        )
        assert reply.is_success, (method, path, reply.text)
        return reply.json() if reply.content else None

    def user(self, name: str, *roles: str) -> None:
        reply = self.ok("root", "POST", "/v1/users", json={"name": name, "roles": roles})
        self.keys[name] = reply["key"]

    def ask(self, name: str, dataset: str, epsilon: str, **query: Any) -> None:
        body = {"dataset": dataset, "epsilon": epsilon, "query": query}
        self.ids[name] = self.ok("ana", "POST", "/v1/queries", json=body)["id"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("browser")
    # With these settings an upload is answered only once its records are ready, even on a slow
    # machine.
    settings = {
        "PURSE_RELEASE_INTERVAL": "0.02",
        "PURSE_OPENING_INTERVAL": "0",
        "PURSE_UPLOAD_WAIT": "60",
    }
    with ServiceProcess(folder / "data", **settings) as service:
        shop = Shop(service.url, {"root": service.admin_key})
        for name, role in (
            ("ada", "admin"),
            ("olga", "owner"),
            ("ana", "analyst"),
            ("otto", "auditor"),
            ("newcomer", "analyst"),
            ("novice", "owner"),
        ):
            shop.user(name, role)
        csv = {"headers": {"Content-Type": "text/csv"}}
        shop.ok("olga", "POST", "/v1/datasets", json=ADULT)
        shop.ok("olga", "PUT", "/v1/datasets/adult/records", content=adult(), **csv)
        graph = {
            "name": "web",
            "kind": "graph",
            "neighbouring": "edge",
            "nodes": {"count": 30},
            "max_degree": 20,
            "cap": {"epsilon": "50", "delta": "0"},
        }
        shop.ok("olga", "POST", "/v1/datasets", json=graph)
        star = "source,target\n" + "".join(f"{i % 4},{i + 4}\n" for i in range(26))
        shop.ok("olga", "PUT", "/v1/datasets/web/records", content=star, **csv)
        shop.ok("olga", "POST", "/v1/datasets", json={**graph, "name": "empty"})
        for name, epsilon in (("adult", "100"), ("web", "1")):
            path = f"/v1/datasets/{name}/budgets/ana"
            shop.ok("olga", "PUT", path, json={"epsilon": epsilon})
        degree = [{"name": "degree"}]
        shop.ask("selection", "web", "0.25", kind="selection", utilities=degree)
        shop.ask("top_k", "web", "0.75", kind="top_k", k=3, utilities=degree)
        shop.ask("tree", "adult", "20", kind="tree", max_depth=2)
        shop.ask("distance", "adult", "20", kind="distance", target="work")
        shop.ask("clustering", "adult", "5", kind="clustering", clusters=2)
        shop.ask("statistic", "adult", "0.5", kind="statistic", statistic="count")
        shop.ask("table", "adult", "1", kind="table", by=["work", "sex"])
        edges = {"kind": "statistic", "statistic": "edges"}
        too_much = {"dataset": "web", "epsilon": "9", "query": edges}
        for _ in range(21):
            key = {"Authorization": f"Bearer {shop.keys['ana']}"}
            reply = httpx.post(f"{shop.url}/v1/queries", json=too_much, headers=key, timeout=REPLY)
            assert reply.status_code == 403
        yield shop


#: Maps each user to the pages to open. ``{tree}`` stands for the id of the tree query.
PAGES: dict[str, list[str]] = {
    "": ["/ui/sign-in", "/ui/nothing"],
    "ana": [
        "/ui/budgets",
        "/ui/budgets/web",
        "/ui/budgets/adult",
        "/ui/ask",
        "/ui/ask?dataset=adult&kind=tree",
        "/ui/ask?dataset=adult&kind=clustering",
        "/ui/ask?dataset=adult&kind=table",
        "/ui/ask?dataset=adult&kind=statistic&form=count",
        "/ui/ask?dataset=adult&kind=selection&form=attributes",
        "/ui/queries",
        "/ui/queries/{selection}",
        "/ui/queries/{top_k}",
        "/ui/queries/{tree}",
        "/ui/queries/{distance}",
        "/ui/queries/{clustering}",
        "/ui/queries/{statistic}",
        "/ui/queries/{table}",
        "/ui/ledger",
        "/ui/datasets",
        "/ui/datasets/adult",
        "/ui/verification",
        "/ui/keys",
        "/ui/help",
        "/ui/help?q=privacy+loss",
        "/ui/help/privacy",
        "/ui/help/mechanisms",
        "/ui/help/operating",
    ],
    "newcomer": ["/ui/budgets", "/ui/ask", "/ui/queries", "/ui/ledger", "/ui/datasets"],
    "olga": [
        "/ui/datasets",
        "/ui/datasets/adult",
        "/ui/datasets/empty",
        "/ui/register",
        "/ui/grants",
        "/ui/grants/adult",
        "/ui/queries",
        "/ui/queries/{tree}",
        "/ui/ledger",
        "/ui/verification",
        "/ui/keys",
    ],
    "novice": ["/ui/datasets", "/ui/grants", "/ui/queries", "/ui/ledger", "/ui/verification"],
    "otto": [
        "/ui/verification",
        "/ui/refusals",
        "/ui/audit",
        "/ui/datasets",
        "/ui/datasets/web",
        "/ui/grants",
        "/ui/grants/web",
        "/ui/queries",
        "/ui/queries/{tree}",
        "/ui/ledger",
        "/ui/keys",
    ],
    "ada": ["/ui/users", "/ui/users/ana", "/ui/users/olga", "/ui/health", "/ui/keys"],
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Chromium, shop: Shop) -> Iterator[Open]:
    """Opens windows: ``opened("ana", width=375, color_scheme="dark")``."""
    with browser.windows(shop.url) as opens:

        def open_one(who: str = "", width: int = 1280, **options: Any) -> Window:
            window = opens(width, **options)
            if who:
                window.sign_in(shop.keys[who])
            return window

        yield open_one


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("who", PAGES)
def test_every_page_is_fit(opened: Open, shop: Shop, who: str, width: int, scheme: str) -> None:
    window = opened(who, width, color_scheme=scheme)
    wrong = {}
    for path in PAGES[who]:
        window.go(path.format(**shop.ids))
        faults = window.is_fit()
        if path == "/ui/nothing":
            faults = [one for one in faults if "404" not in one]
        if faults:
            wrong[path] = faults
    assert not wrong, "\n".join(f"{path}: {faults}" for path, faults in wrong.items())


@pytest.mark.parametrize("who", PAGES)
def test_every_page_works_without_script(opened: Open, shop: Shop, who: str) -> None:
    for width, scheme in ((1280, "light"), (375, "dark")):
        window = opened(who, width, java_script_enabled=False, color_scheme=scheme)
        for path in PAGES[who]:
            window.go(path.format(**shop.ids))
            assert window.page.locator("h1").count() == 1, path
            assert window.page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.parametrize("script", [True, False])
def test_an_analyst_asks_for_a_tree(opened: Open, shop: Shop, script: bool) -> None:
    window = opened("ana", java_script_enabled=script)
    page = window.page
    before = shop.ok("ana", "GET", "/v1/budgets")["items"]
    remaining = {one["dataset"]: float(one["remaining"]["epsilon"]) for one in before}["adult"]
    with window.without_errors():
        page.get_by_role("link", name="Ask", exact=True).first.click()
        page.get_by_label("Dataset").select_option("adult")
        page.get_by_role("button", name="Show its fields").click()
        page.get_by_label("Question").select_option("tree")
        page.get_by_role("button", name="Show its fields").click()
        page.wait_for_selector("#f-max_depth")
        page.get_by_label("Max depth").fill("2")
        page.get_by_label("ε", exact=True).fill("2.5")
        page.get_by_role("button", name="Quote").click()
        page.get_by_text("Where the charge goes").wait_for()
        assert page.get_by_text("leaf count error").count() >= 1
        if script:
            assert window.is_fit() == []
            window.picture("quote")
        page.get_by_role("button", name="Ask, and spend ε 2.5").click()
        page.wait_for_url("**/ui/queries/*")
        page.get_by_role("heading", name="Answer").wait_for()
        assert page.locator(".tree svg").count() == 1
        assert page.locator(".tree svg rect").count() > 1
        now = f"{remaining - 2.5:g}"
        assert page.get_by_text(f"ε {now}").count() >= 1
        if script:
            assert window.is_fit() == []
        page.get_by_role("link", name="Your budget", exact=True).click()
        assert page.get_by_text(f"ε {now} left of 100").count() == 1


TABLE_FORM = "/ui/ask?dataset=adult&kind=table"
WORK, SEX = ADULT["attributes"][1]["values"], ADULT["attributes"][0]["values"]
CELLS = len(WORK) * len(SEX)


def shows_the_table(page: Any) -> None:
    """A heat map with a legend, bars with error bars, and a row for each cell."""
    page.get_by_role("heading", name="Answer").wait_for()
    assert page.locator('svg[aria-label^="Heat map of count with a legend"]').count() == 1
    bars = page.locator('svg[aria-label^="Bars of count with error bars"]')
    assert bars.locator("rect").count() == bars.locator("path.error").count() == CELLS
    assert page.get_by_role("region", name="Cells").locator("tbody tr").count() == CELLS


def column_of(page: Any, column: int) -> list[str]:
    """The texts of one column of the answer, from the top to the bottom."""
    rows = page.get_by_role("region", name="Cells").locator("tbody tr")
    texts: list[str] = rows.evaluate_all(
        "(rows, column) => rows.map(row => row.cells[column].textContent)", column
    )
    return texts


def sorts_by_its_heads(window: Window) -> None:
    """Each head sorts upwards, then downwards; a screen reader hears which, and the name alone."""
    page = window.page
    cells = page.get_by_role("region", name="Cells")
    for name, column, key in (("count", 2, float), ("work", 0, WORK.index)):
        for direction in ("ascending", "descending"):
            cells.get_by_role("button", name=name, exact=True).click()
            assert cells.locator("th[aria-sort]").count() == 1
            head = cells.locator(f'th[aria-sort="{direction}"]')
            assert head.inner_text().startswith(name)
            keys = [key(text) for text in column_of(page, column)]
            assert keys == sorted(keys, reverse=direction == "descending")
            assert len(keys) == CELLS
    assert window.is_fit() == []


@pytest.mark.parametrize(
    ("script", "width", "scheme"),
    [(True, 1280, "light"), (True, 375, "dark"), (False, 375, "dark")],
)
def test_an_analyst_builds_a_two_way_table(
    opened: Open, script: bool, width: int, scheme: str
) -> None:
    window = opened("ana", width, color_scheme=scheme, java_script_enabled=script)
    page = window.page
    with window.without_errors():
        window.go(TABLE_FORM)
        page.get_by_label("Rows", exact=True).select_option("work")
        page.get_by_label("Columns", exact=True).select_option("sex")
        page.get_by_label("ε", exact=True).fill("1.5")
        page.get_by_role("button", name="Quote").click()
        page.get_by_role("button", name="Ask, and spend ε 1.5").wait_for()
        assert page.locator("#quote .big").inner_text() == "ε 1.5"
        if script:
            assert window.is_fit() == []
        page.get_by_role("button", name="Ask, and spend ε 1.5").click()
        page.wait_for_url("**/ui/queries/*")
        shows_the_table(page)
        question = "What is the number of records in adult version 1, by work and sex?"
        assert page.get_by_text(question).count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if script:
            sorts_by_its_heads(window)
        else:
            assert page.get_by_role("region", name="Cells").get_by_role("button").count() == 0
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV", exact=True).click()
    with Path(download.value.path()).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["work"], row["sex"]) for row in rows} == set(product(WORK, SEX))
    assert len(rows) == CELLS
    for row in rows:
        assert float(row["count.low"]) <= float(row["count.value"]) <= float(row["count.high"])


def test_a_table_is_bought_and_sorted_by_keyboard_alone(opened: Open) -> None:
    window = opened("ana", 375)
    page, keyboard = window.page, window.page.keyboard

    def reach(name: str) -> None:
        """Press Tab until the focused control has this id or text."""
        focus = "[document.activeElement.id, document.activeElement.textContent.trim()]"
        for _ in range(200):
            keyboard.press("Tab")
            if name in page.evaluate(focus):
                return
        raise AssertionError(f"{name} is out of reach")

    with window.without_errors():
        window.go(TABLE_FORM)
        reach("f-by-rows")
        keyboard.type("work")
        reach("f-by-columns")
        keyboard.type("sex")
        reach("epsilon")
        keyboard.press("Control+A")
        keyboard.type("0.75")
        reach("Quote")
        keyboard.press("Enter")
        page.get_by_role("button", name="Ask, and spend ε 0.75").wait_for()
        reach("Ask, and spend ε 0.75")
        keyboard.press("Enter")
        page.wait_for_url("**/ui/queries/*")
        shows_the_table(page)
        reach("count")
        for direction in (1, -1):
            keyboard.press("Enter")
            numbers = [direction * float(text) for text in column_of(page, 2)]
            assert numbers == sorted(numbers)
        reach("CSV")


@pytest.mark.parametrize("script", [True, False])
def test_an_owner_uploads_a_table_and_grants(
    opened: Open, shop: Shop, script: bool, tmp_path: Path
) -> None:
    name = f"adult-{'with' if script else 'without'}-script"
    described, records = owners_table()
    rows, wrong = tmp_path / "adult.csv.gz", tmp_path / "wrong.csv"
    rows.write_bytes(gzip.compress(records))
    wrong.write_bytes(re.sub(rb",Sales,", b",Astronaut,", records, count=1))
    window = opened("olga", java_script_enabled=script)
    page = window.page
    with window.without_errors():
        page.get_by_role("link", name="Register a dataset").click()
        text = json.dumps({**described, "name": name})
        page.get_by_text("Write it as JSON instead").click()
        page.get_by_label("Public description, as JSON").fill(text)
        page.get_by_role("button", name="Register it").click()
        page.get_by_text("none: no records yet").wait_for()
        page.get_by_label("A file of records").set_input_files(wrong)
        page.get_by_role("button", name="Upload").click()
        page.get_by_text("Invalid records").wait_for(timeout=90_000)
        assert page.get_by_text("Astronaut").count() == 0
        # Browsers log the status of an error page as an error in the console.
        window.errors[:] = [one for one in window.errors if "422" not in one]
        if script:
            assert window.is_fit() == []
        page.get_by_label("A file of records").set_input_files(rows)
        page.get_by_role("button", name="Upload").click()
        page.get_by_role("button", name="Upload version 2").wait_for(timeout=90_000)
        assert page.get_by_text("queries read it").count() == 1
        page.get_by_role("link", name="Grant an allowance").click()
        assert page.get_by_role("heading", level=1).text_content().startswith(name)
        page.get_by_label("Analyst", exact=True).fill("newcomer")
        page.get_by_label("ε in total").fill("3")
        page.get_by_role("button", name="What would it buy?").click()
        page.get_by_text("decision tree of depth 3").wait_for()
        if script:
            assert window.is_fit() == []
            window.picture("grants")
        page.get_by_role("button", name="Set the allowance").click()
        page.get_by_text(f"newcomer may now learn ε 3 of {name}").wait_for()
    accounts = shop.ok("newcomer", "GET", "/v1/budgets")["items"]
    assert {one["dataset"]: one["allowance"]["epsilon"] for one in accounts}[name] == "3"


def test_from_a_request_to_a_certificate_that_verifies_offline(
    opened: Open, shop: Shop, tmp_path: Path
) -> None:
    shop.user("petra", "analyst")
    shop.ok("olga", "PUT", "/v1/datasets/web/budgets/petra", json={"epsilon": "0"})
    analyst, owner = opened("petra"), opened("olga")
    with analyst.without_errors(), owner.without_errors():
        page = analyst.page
        analyst.go("/ui/datasets/web/requests")
        page.get_by_label("ε in total").fill("1")
        page.get_by_label("What it is for").fill("Hubs for the annual report")
        assert analyst.is_fit() == []
        page.get_by_role("button", name="Send the request").click()
        page.get_by_role("button", name="Withdraw and erase the texts").wait_for()
        page = owner.page
        owner.go("/ui/datasets")
        page.get_by_role("link", name="Notices").click()
        page.get_by_text("petra requests budget on web").wait_for()
        page.get_by_role("link", name="decide about it").click()
        page.get_by_text("Hubs for the annual report").wait_for()
        page.get_by_label("Reason, for the analyst").fill("Agreed")
        assert owner.is_fit() == []
        page.get_by_role("button", name="Grant").click()
        page.get_by_text("Granted: ε 1").wait_for()
        page = analyst.page
        page.get_by_role("link", name="Notices").click()
        page.get_by_text("Your request for budget on web was granted.").wait_for()
        analyst.go("/ui/ask?dataset=web&kind=selection")
        page.get_by_label("ε", exact=True).fill("0.9")
        page.get_by_role("button", name="Quote").click()
        page.get_by_role("button", name="Ask, and spend ε 0.9").click()
        page.get_by_role("heading", name="Answer").wait_for()
        page.get_by_role("link", name="Notices").click()
        page.get_by_text("Less than 15 % of your allowance for web is left.").wait_for()
        assert analyst.is_fit() == []
        page.go_back()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download its certificate").click()
    certificate, keys = tmp_path / "answer.jws", tmp_path / "keys.json"
    download.value.save_as(certificate)
    keys.write_text(json.dumps(shop.ok("petra", "GET", "/v1/certificate-keys")))
    stated = json.loads(verified_offline(certificate, keys).stdout)
    assert stated["loss"]["epsilon"] == "0.9"
    content, key = certificate.read_bytes(), json.loads(keys.read_text())
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 7
        with pytest.raises(CertificateInvalid):
            verify_certificate(bytes(changed), key)
    certificate.write_bytes(changed)
    assert verified_offline(certificate, keys).returncode == 1


def verified_offline(certificate: Path, keys: Path) -> subprocess.CompletedProcess[str]:
    """``privypurse verify-certificate`` where there is no network, and the client alone."""
    command = ["verify-certificate", str(certificate), "--key", str(keys)]
    script = (
        "import socket; socket.socket.connect = socket.getaddrinfo = None; "
        f"from privypurse.cli import cli; cli({command!r})"
    )
    return subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=certificate.parent,
        env={"PYTHONPATH": str(ROOT / "client"), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_quote_follows_what_is_typed(opened: Open) -> None:
    window = opened("ana")
    with window.without_errors():
        window.go("/ui/ask?dataset=adult&kind=statistic&form=count")
        for epsilon in ("0.25", "nonsense", "0.5"):
            window.page.get_by_label("ε", exact=True).fill(epsilon)
            window.page.get_by_label("ε", exact=True).blur()
            if epsilon == "nonsense":
                window.page.get_by_text("not a decimal number").wait_for()
            else:
                window.page.get_by_role("button", name=f"spend ε {epsilon}").wait_for()
        assert window.is_fit() == []


def test_two_browsers_race_for_the_last_of_a_budget(opened: Open, shop: Shop) -> None:
    shop.user("racer", "analyst")
    shop.ok("olga", "PUT", "/v1/datasets/web/budgets/racer", json={"epsilon": "1"})
    first, second = opened("racer"), opened("racer")
    for window in (first, second):
        window.go("/ui/ask?dataset=web&kind=selection")
        window.page.get_by_label("ε", exact=True).fill("0.6")
        window.page.get_by_role("button", name="Quote").click()
        window.page.get_by_role("button", name="Ask, and spend ε 0.6").wait_for()
    first.page.get_by_role("button", name="Ask, and spend ε 0.6").click(no_wait_after=True)
    second.page.get_by_role("button", name="Ask, and spend ε 0.6").click(no_wait_after=True)
    outcomes = []
    for window in (first, second):
        window.page.locator("h1", has_not_text="Ask a question").wait_for()
        outcomes.append(window.page.locator("h1").inner_text())
        assert [one for one in window.is_fit() if "403" not in one] == []
    assert sorted(outcomes) == ["Privacy budget exhausted", "Selection of web"]
    loser = first if outcomes[0].startswith("Privacy") else second
    assert loser.page.get_by_text("A question of at most ε 0.4 still fits").count() == 1
    path = shop.ok("otto", "GET", "/v1/ledger?analyst=racer&kind=charge")["items"]
    assert [entry["epsilon"] for entry in path] == ["0.6"]


def test_by_keyboard_alone(opened: Open, shop: Shop) -> None:
    window = opened()
    window.go("/ui/sign-in")
    keyboard = window.page.keyboard
    for _ in range(3):
        keyboard.press("Tab")
    assert window.page.evaluate("document.activeElement.id") == "key"
    keyboard.type(shop.keys["ana"])
    keyboard.press("Enter")
    window.page.wait_for_url("**/ui/budgets")
    keyboard.press("Tab")
    assert window.page.evaluate("document.activeElement.textContent") == "Skip to content"
    keyboard.press("Enter")
    assert window.page.evaluate("document.activeElement.id") == "main"


@pytest.mark.skipif(not PICTURES, reason="pictures are made when PURSE_SCREENSHOTS names a folder")
def test_pictures(opened: Open, shop: Shop) -> None:
    for name, who, path, options in SHOWN:
        window = opened(who, **options)
        window.go(path.format(**shop.ids))
        window.picture(name)
        assert (Path(ROOT) / str(PICTURES) / f"{name}.png").stat().st_size > 1000


#: The screenshots for the documentation: name, user, page, and options of the browser window.
SHOWN: list[tuple[str, str, str, dict[str, Any]]] = [
    ("budgets", "ana", "/ui/budgets", {}),
    ("burn-down", "ana", "/ui/budgets/adult", {}),
    ("tree", "ana", "/ui/queries/{tree}", {}),
    ("distances-dark", "ana", "/ui/queries/{distance}", {"color_scheme": "dark"}),
    ("verification", "otto", "/ui/verification", {}),
    ("budgets-phone", "ana", "/ui/budgets", {"width": 375, "color_scheme": "dark"}),
]
