"""The pages of an owner: register, upload, grant; and no page shows a record."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from tests.support.browser import HOME, SignIn, bars, words
from tests.support.pageforms import forms
from tests.support.service import EDGES, GRAPH, Service
from tests.unit.app.dashboard.test_ask import ROWS, TABLE


def test_every_example_registers_as_it_stands(people: Service, sign_in: SignIn) -> None:
    browser = sign_in("olga")
    assert "Register what is public about one" in browser.text("/ui/datasets")
    for kind in ("table", "graph", "prefix"):
        form = forms(browser.get("/ui/register", kind=kind).text)["POST /ui/register"]
        text = form.fields["description"][0]
        reply = browser.post("/ui/register", description=text)
        name = json.loads(text)["name"]
        assert (reply.status_code, reply.headers["location"]) == (303, f"/ui/datasets/{name}")
        served = people("olga", "GET", f"/v1/datasets/{name}").json()
        assert served["kind"] == kind
        page = browser.text(f"/ui/datasets/{name}")
        assert "none: no records yet" in page
        assert f"ε {served['cap']['epsilon']}" in page
    again = browser.post("/ui/register", description=text)
    assert (again.status_code, "Already exists" in again.text) == (409, True)


def test_the_page_of_a_dataset_of_persons_says_what_is_kept(
    people: Service, sign_in: SignIn
) -> None:
    body = {**TABLE, "person": "patient", "records_per_person": 3}
    assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
    page = words(sign_in("olga").text(f"/ui/datasets/{TABLE['name']}"))
    assert "Privacy hides one whole person, there or not Persons by the column patient" in page
    assert "at most 3 rows are kept" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ('{"kind": "graph", "kind": "graph"}', "repeated"),
        (json.dumps({**GRAPH, "max_degree": 5}), "max_degree is at most"),
        (json.dumps({**GRAPH, "CANARY": 1}), "Extra inputs are not permitted"),
    ],
)
def test_a_wrong_description_is_told_where(sign_in: SignIn, text: str, said: str) -> None:
    reply = sign_in("olga").post("/ui/register", description=text)
    assert reply.status_code == 422
    assert said in words(reply.text)


class TestUpload:
    @pytest.fixture
    def web(self, people: Service) -> Service:
        people.dataset("olga", records=None, name="web")
        return people

    @pytest.mark.parametrize(
        ("filename", "content"),
        [("e.csv", EDGES), ("E.CSV.GZ", gzip.compress(EDGES, mtime=0)), ("../../e.txt", EDGES)],
    )
    def test_a_file_becomes_a_version(
        self, web: Service, sign_in: SignIn, filename: str, content: bytes
    ) -> None:
        browser = sign_in("olga")
        browser.get("/ui/datasets/web")
        reply = browser.post("/ui/datasets/web/records", files={"file": (filename, content)})
        assert (reply.status_code, reply.headers["location"]) == (303, "/ui/datasets/web")
        assert web("olga", "GET", "/v1/datasets/web").json()["version"] == 1
        assert "Upload version 2" in browser.text("/ui/datasets/web")
        incoming = web.settings.data / "incoming"
        assert [path for path in incoming.rglob("*") if path.is_file()] == []

    def test_the_list_shows_the_cap_of_each_dataset(self, web: Service, sign_in: SignIn) -> None:
        web.dataset("olga", records=None, name="small", cap={"epsilon": "7", "delta": "0.001"})
        for who in ("olga", "otto"):
            page = words(sign_in(who).text("/ui/datasets"))
            assert "small" in page
            assert "ε 7 δ 0.001" in page

    def test_made_up_records_can_be_downloaded(self, web: Service, sign_in: SignIn) -> None:
        browser = sign_in("olga")
        link = "/ui/datasets/web/mock.csv"
        assert f'href="{link}"' in browser.get("/ui/datasets/web").text
        reply = browser.get(link)
        assert reply.content == web("olga", "GET", "/v1/datasets/web/mock").content
        assert reply.headers["content-disposition"] == 'attachment; filename="web-mock.csv"'
        assert sign_in("otto").get(link).content == reply.content

    def test_a_large_file_arrives_whole(self, web: Service, sign_in: SignIn) -> None:
        nodes = 20_000
        web.dataset("olga", records=None, name="big", nodes={"count": nodes}, max_degree=1)
        edges = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(0, nodes, 2))
        for name in ("big", "same"):
            if name == "same":
                web.dataset("olga", edges.encode(), name=name, nodes={"count": nodes}, max_degree=1)
            else:
                browser = sign_in("olga")
                browser.get("/ui/datasets/big")
                files = {"file": ("e.csv", edges.encode())}
                assert browser.post("/ui/datasets/big/records", files=files).status_code == 303
        folders = sorted((web.settings.data / "datasets").glob("*/1"))
        assert len(folders) == 2
        # The same file sent by browser and by API must give equal arrays. Manifests are not
        # compared, because their random salts differ.
        first, second = ({p.name: p.read_bytes() for p in f.glob("*.npy")} for f in folders)
        assert first
        assert first == second

    def test_a_refusal_says_where_and_shows_no_record(
        self, people: Service, sign_in: SignIn
    ) -> None:
        assert people("olga", "POST", "/v1/datasets", json=TABLE).status_code == 201
        browser = sign_in("olga")
        browser.get("/ui/datasets/weather")
        wrong = (ROWS + "CANARY,no,low,3,a\n").encode()
        files = {"file": ("rows.csv", wrong)}
        reply = browser.post("/ui/datasets/weather/records", files=files)
        assert reply.status_code == 422
        assert "Invalid records" in words(reply.text)
        assert "sky" in words(reply.text)
        later = browser.text("/ui/datasets/weather")
        assert "The last upload was refused" in later
        assert "CANARY" not in reply.text + later
        for who in ("otto",):
            assert "refused" not in sign_in(who).text("/ui/datasets/weather")

    def test_a_refused_upload_leaves_a_dataset_ready(
        self, people: Service, sign_in: SignIn
    ) -> None:
        assert people("olga", "POST", "/v1/datasets", json=TABLE).status_code == 201
        browser, pages = sign_in("olga"), ("/ui/datasets", "/ui/datasets/weather")
        wrong = {"file": ("rows.csv", (ROWS + "x,no,low,3,a\n").encode())}
        browser.post("/ui/datasets/weather/records", files=wrong)
        assert not any("ready" in browser.text(page) for page in pages)
        assert people.upload("olga", "weather", ROWS.encode()).status_code == 201
        assert browser.post("/ui/datasets/weather/records", files=wrong).status_code == 422
        for page in pages:
            assert "ready new upload: refused" in browser.text(page)
        assert people("ana", "GET", "/v1/datasets").json()["items"] == []

    @pytest.mark.parametrize(
        ("files", "status"),
        [
            ({"file": ("", b"")}, 422),
            ({"file": ("e.exe", EDGES)}, 415),
            ({"file": ("e.json.gz", EDGES)}, 415),
            ({"other": ("e.csv", b"x")}, 422),
            (None, 415),
        ],
    )
    def test_what_is_no_file_of_records(
        self, web: Service, sign_in: SignIn, files: Any, status: int
    ) -> None:
        browser = sign_in("olga")
        browser.get("/ui/datasets/web")
        reply = browser.post("/ui/datasets/web/records", files=files)
        assert reply.status_code == status
        assert web("olga", "GET", "/v1/datasets/web").json()["version"] == 0

    @pytest.mark.parametrize("cut", [0.2, 0.5, 0.9])
    def test_a_form_that_ends_too_early_publishes_nothing(
        self, web: Service, sign_in: SignIn, cut: float
    ) -> None:
        browser = sign_in("olga")
        browser.get("/ui/datasets/web")
        edges = EDGES.decode()
        body = (
            f'--B\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{browser.csrf}\r\n--B\r\n'
            f'Content-Disposition: form-data; name="file"; filename="e.csv"\r\n\r\n{edges}\r\n--B--'
        )
        headers = {"Origin": HOME, "Content-Type": "multipart/form-data; boundary=B"}
        path = "/ui/datasets/web/records"
        sent = body[: int(len(body) * cut)].encode()
        reply = browser.client.post(path, content=sent, headers=headers)
        assert reply.status_code in (403, 422)
        assert web("olga", "GET", "/v1/datasets/web").json()["version"] == 0
        assert browser.client.post(path, content=body, headers=headers).status_code == 303

    @pytest.mark.parametrize(
        ("boundary", "body"),
        [
            ("", b"--B\r\n"),
            ("; boundary=", b"--\r\n"),
            ("; boundary=" + "b" * 300, b"--B\r\n"),
            ("; boundary=B", b"no form\r\n"),
            ("; boundary=B", b"--B\r\nbad header\r\n\r\n"),
            ("; boundary=B", b"--B\r\n" + b"a: b\r\n" * 100),
            ("; boundary=B", b"--B\r\na: " + b"b" * 100_000),
        ],
    )
    def test_what_is_no_form_is_refused(
        self, web: Service, sign_in: SignIn, boundary: str, body: bytes
    ) -> None:
        browser = sign_in("olga")
        headers = {"Origin": HOME, "Content-Type": f"multipart/form-data{boundary}"}
        reply = browser.client.post("/ui/datasets/web/records", content=body, headers=headers)
        assert reply.status_code == 422
        assert web("olga", "GET", "/v1/datasets/web").json()["version"] == 0

    def test_nothing_is_read_before_the_token(self, web: Service, sign_in: SignIn) -> None:
        browser = sign_in("olga")
        browser.csrf = "0" * 64
        files = {"file": ("e.csv", EDGES)}
        assert browser.post("/ui/datasets/web/records", files=files).status_code == 403
        assert "upload" not in web("olga", "GET", "/v1/datasets/web").json()

    def test_node_names_come_first(self, people: Service, sign_in: SignIn) -> None:
        people.dataset("olga", records=None, name="names", nodes=None, max_degree=None)
        browser = sign_in("olga")
        form = forms(browser.get("/ui/datasets/names").text)["POST /ui/datasets/names/nodes"]
        assert form.method == "post"
        files = {"file": ("n.txt", b"ann\nbob\ncid\n")}
        assert browser.post("/ui/datasets/names/nodes", files=files).status_code == 303
        assert "POST /ui/datasets/names/records" in forms(browser.get("/ui/datasets/names").text)
        files = {"file": ("e.csv", b"source,target\nann,bob\n")}
        assert browser.post("/ui/datasets/names/records", files=files).status_code == 303

    def test_withdrawing(self, people: Service, sign_in: SignIn) -> None:
        people.dataset("olga", name="web")
        browser = sign_in("olga")
        assert browser.post("/ui/datasets/web/withdraw").status_code == 303
        assert "none: no records yet" in browser.text("/ui/datasets/web")
        people.upload("olga", "web", EDGES)
        page = browser.text("/ui/datasets/web")
        versions = page.partition("Versions")[2]
        assert re.search(r"2 2\S+ \S+ (UTC )?queries read it 1 2\S+ \S+ (UTC )?retired", versions)
        assert "Versions" not in sign_in("otto").text("/ui/datasets/web")

    def test_only_its_owner(self, web: Service, sign_in: SignIn) -> None:
        web.user("oscar", "owner")
        browser = sign_in("oscar")
        browser.get("/ui/datasets")
        files = {"file": ("e.csv", EDGES)}
        for name in ("web", "absent"):
            assert browser.get(f"/ui/datasets/{name}").status_code == 404
            for reply in (
                browser.post(f"/ui/datasets/{name}/records", files=files),
                browser.post(f"/ui/datasets/{name}/nodes", files=files),
                browser.post(f"/ui/datasets/{name}/withdraw"),
                browser.post(f"/ui/grants/{name}", analyst="ana", epsilon="1"),
            ):
                assert (reply.status_code, "Not found" in reply.text) == (404, True)
        assert sign_in("ana").get("/ui/datasets/web").status_code == 404
        assert "/records" not in sign_in("otto").get("/ui/datasets/web").text


class TestGrants:
    @pytest.fixture
    def shop(self, people: Service) -> Service:
        people.user("ben", "analyst")
        people.dataset("olga", name="web")
        assert people("olga", "POST", "/v1/datasets", json=TABLE).status_code == 201
        return people

    def test_an_allowance_is_set_and_shown(self, shop: Service, sign_in: SignIn) -> None:
        browser = sign_in("olga")
        for analyst, epsilon in (("ana", "7"), ("ben", "6")):
            page = browser.post("/ui/grants/web", analyst=analyst, epsilon=epsilon, do="grant")
            assert f"{analyst} may now learn ε {epsilon} of web" in words(page.text)
        granted = shop("olga", "GET", "/v1/datasets/web/budgets").json()
        assert granted["exposure"]["at_most"]["epsilon"] == "10"
        rows = "ana open ε 7 ε 0 no end 100 % ben open ε 6 ε 0 no end 100 %"
        assert rows in words(page.text)
        auditors = sign_in("otto").text("/ui/grants/web")
        assert rows in auditors
        assert "At most, if all allowances are spent and pooled ε 10" in auditors
        assert "Set an allowance" not in auditors
        overview = "ε 0 100 % 0 web open ε 10 ε 0 100 % 2"
        assert overview in sign_in("otto").text("/ui/grants")
        assert overview in browser.text("/ui/grants")

    @pytest.mark.long
    def test_many_analysts_are_searched_and_turned_over(
        self, shop: Service, sign_in: SignIn
    ) -> None:
        for number in range(60):
            shop.user(f"reader{number:02}", "analyst")
            shop.grant("olga", "web", f"reader{number:02}", "1")
        body = {
            "dataset": "web",
            "epsilon": "0.9",
            "query": {"kind": "statistic", "statistic": "edges"},
        }
        assert shop("reader33", "POST", "/v1/queries", json=body).status_code == 201
        browser = sign_in("olga")
        text = browser.text("/ui/grants/web")
        assert "60 of 60." in text
        assert "Page 1 of 2" in text
        assert text.index("reader33 nearly spent") < text.index("reader00")
        assert "reader59" not in text
        assert "reader59" in browser.text("/ui/grants/web?page=2&order=name")
        assert "10 of 60." in browser.text("/ui/grants/web?q=ER3&order=name")
        assert "No analyst has a name like that" in browser.text("/ui/grants/web?q=nobody")
        for hostile in ("page=0", "page=x", "page=99999999999", "order=<b>", "q=%00%ff"):
            assert browser.get(f"/ui/grants/web?{hostile}").status_code == 200
        assert "How the cap went down" in text
        assert "How the cap went down" in sign_in("otto").text("/ui/grants/web")

    @pytest.mark.parametrize(
        ("changed", "status"),
        [
            ({"epsilon": "x"}, 422),
            ({"epsilon": "-1"}, 422),
            ({"delta": "1"}, 422),
            ({"analyst": "olga"}, 404),
            ({"analyst": "nobody"}, 404),
        ],
    )
    def test_what_cannot_be_granted(
        self, shop: Service, sign_in: SignIn, changed: dict[str, str], status: int
    ) -> None:
        sent = {"analyst": "ana", "epsilon": "1", "do": "grant", **changed}
        assert sign_in("olga").post("/ui/grants/web", **sent).status_code == status
        assert shop("olga", "GET", "/v1/datasets/web/budgets").json()["items"] == []

    def test_the_cap_gets_a_delta_for_many_queries(self, shop: Service, sign_in: SignIn) -> None:
        browser = sign_in("olga")
        sent = {"composition_delta": "0.000001", "gaussian": "yes"}
        assert "above 0.0001 is refused" in browser.text("/ui/grants/web")
        page = words(browser.post("/ui/grants/web/cap", **sent).text)
        assert "Charges now fit the cap of web by ε or by ρ." in page
        cap = shop("olga", "GET", "/v1/datasets/web").json()["cap"]
        assert (cap["composition_delta"], cap["gaussian"]) == ("0.000001", True)
        described = browser.text("/ui/datasets/web")
        assert f"or ρ {cap['rho']} (δ for many queries 0.000001) Gaussian" in described
        for path, more in (("/cap", {}), ("", {"analyst": "ana", "epsilon": "1", "do": "grant"})):
            large = {"composition_delta": "0.001", **more}
            refused = browser.post(f"/ui/grants/web{path}", **large)
            assert refused.status_code == 422
            assert "0.0001 needs allow_large_delta" in refused.text
            allowed = browser.post(f"/ui/grants/web{path}", **large, allow_large_delta="yes")
            assert allowed.status_code == 200
        page = words(browser.post("/ui/grants/web/cap", composition_delta="0").text)
        assert "by ε alone" in page

    def test_the_cap_shows_two_bars_and_what_it_promises(
        self, shop: Service, sign_in: SignIn
    ) -> None:
        browser = sign_in("olga")
        form = browser.get("/ui/grants/web").text
        assert bars(form) == ["100 percent of ε is left"]
        assert "by however many analysts" not in form
        # Each page on which an owner can allow Gaussian noise must say which promise ends with the
        # first such answer.
        for page in (form, browser.get("/ui/register", kind="table").text):
            assert "From the first such answer of any analyst on" in page
        promise = {"composition_delta": "0.000001", "gaussian": "yes"}
        page = browser.post("/ui/grants/web/cap", **promise).text
        assert bars(page) == ["100 percent of ε is left", "100 percent of ρ is left"]
        sentence = (
            "Whatever is asked, in whatever order, by however many analysts together: nobody's "
            "odds about a record change by more than a factor e^10, except for a share of the "
            "probability of 0.000001."
        )
        assert sentence in words(page)
        assert "While the sum of ε is within 10, that holds without exception." in words(page)
        # A lower δ does not change the sentence, because it states the largest δ that the cap ever
        # had.
        page = browser.post("/ui/grants/web/cap", composition_delta="0.000000001").text
        assert sentence in words(page)
        browser.post("/ui/grants/web/cap", **promise)
        noise = {"composition_delta": "0.000001", "gaussian": "yes"}
        browser.post("/ui/grants/web", analyst="ana", epsilon="10", do="grant", **noise)
        query = {"kind": "top_k", "k": 1, "utilities": [{"name": "degree"}]}
        body = {"dataset": "web", "rho": "0.1", "query": query}
        assert shop("ana", "POST", "/v1/queries", json=body).status_code == 201
        page = words(browser.get("/ui/grants/web").text)
        assert "the exception never goes away" in page
        assert "that holds without exception" not in page

    def test_never_below_what_is_spent(self, shop: Service, sign_in: SignIn) -> None:
        shop.grant("olga", "web", "ana", "1")
        query = {"kind": "statistic", "statistic": "edges"}
        body = {"dataset": "web", "epsilon": "0.5", "query": query}
        assert shop("ana", "POST", "/v1/queries", json=body).status_code == 201
        page = sign_in("olga").post("/ui/grants/web", analyst="ana", epsilon="0.25")
        assert page.status_code == 409
        assert "Spent: ε 0.5" in words(page.text)

    def test_the_end_of_an_allowance_is_shown_and_kept(
        self, shop: Service, sign_in: SignIn
    ) -> None:
        def end() -> str | None:
            (account,) = shop("olga", "GET", "/v1/datasets/web/budgets").json()["items"]
            return account.get("until")

        browser = sign_in("olga")
        sent = {"analyst": "ana", "epsilon": "1", "do": "grant"}
        page = browser.post("/ui/grants/web", **sent, until="2100-01-01")
        assert "until 2100-01-01 00:00 UTC" in words(page.text)
        assert end() == "2100-01-01T00:00:00Z"
        assert "2100-01-01" in browser.text("/ui/grants/web")
        browser.post("/ui/grants/web", **{**sent, "epsilon": "2"})
        assert end() == "2100-01-01T00:00:00Z"
        both = browser.post("/ui/grants/web", **sent, until="2101-01-01", endless="yes")
        assert both.status_code == 422
        browser.post("/ui/grants/web", **sent, endless="yes")
        assert end() is None

    def test_what_it_would_buy_is_what_a_quote_says(self, shop: Service, sign_in: SignIn) -> None:
        shop.grant("olga", "web", "ana", "5")
        sent = {"analyst": "", "epsilon": "5", "do": "preview"}
        page = words(sign_in("olga").post("/ui/grants/web", **sent).text)
        for answers in (1, 10, 100):
            each = f"{5 / answers:g}"
            body = {
                "dataset": "web",
                "epsilon": each,
                "query": {"kind": "statistic", "statistic": "edges"},
            }
            quoted = shop("ana", "POST", "/v1/quotes", json=body).json()
            assert f"ε {each} each" in page
            assert f"off by at most {quoted['accuracy']['error']}" in page
        page = words(sign_in("olga").post("/ui/grants/weather", **sent).text)
        assert "decision tree of depth 3" in page
        assert "counts of leaves off by at most" in page
        assert shop("otto", "GET", "/v1/ledger?kind=charge").json()["items"] == []


def test_without_a_dataset_the_pages_say_what_to_do(sign_in: SignIn) -> None:
    assert "Register a dataset first" in sign_in("olga").text("/ui/grants")
    assert "once its owner has granted you" in sign_in("ana").text("/ui/datasets")


def test_no_page_of_anybody_shows_a_record(
    people: Service, sign_in: SignIn, caplog: pytest.LogCaptureFixture
) -> None:
    """Searches all pages for a number that occurs in one record only."""
    body = {**TABLE, "attributes": [*TABLE["attributes"]]}
    body["attributes"][3] = {"name": "heat", "kind": "numeric", "bounds": [0, 987654321], "bins": 4}
    assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
    rows = ROWS + "sun,yes,low,31415926,a\n"
    assert people.upload("olga", "weather", rows.encode()).status_code == 201
    people.grant("olga", "weather", "ana", "50")
    query = {"kind": "tree", "max_depth": 1}
    request = {"dataset": "weather", "epsilon": "5", "query": query}
    reply = people("ana", "POST", "/v1/queries", json=request).json()
    seen = ""
    paths = ["/ui/budgets", "/ui/budgets/weather", "/ui/datasets", "/ui/datasets/weather",
             "/ui/ledger", "/ui/ledger.csv", "/ui/queries", f"/ui/queries/{reply['id']}",
             "/ui/grants", "/ui/ask?dataset=weather&kind=tree", "/ui/keys"]  # fmt: skip
    for who in ("ana", "olga", "otto", "ada"):
        browser = sign_in(who)
        seen += "".join(browser.get(path).text for path in paths)
    assert "31415926" not in seen + caplog.text
    assert "weather" in seen
