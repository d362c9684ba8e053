"""The pages of requests for budget: without a script, from the request to the decision."""

from __future__ import annotations

import re

from tests.support.browser import SignIn, words
from tests.support.service import Service

PURPOSE = 'A report\r\non <script>alert("x")</script> triangles'
LIST = "/ui/datasets/triangle/requests"


def test_from_a_request_to_its_grant(people: Service, sign_in: SignIn) -> None:
    people.dataset("olga", records=None)
    people.grant("olga", "triangle", "ana", "0")
    ana, olga = sign_in("ana"), sign_in("olga")
    assert LIST in ana.get("/ui/budgets/triangle").text
    wrong = ana.post(LIST, epsilon="two", purpose=PURPOSE)
    assert (wrong.status_code, "two" in wrong.text) == (422, True)
    sent = ana.post(LIST, epsilon="2", purpose=PURPOSE, until="2100-01-01")
    assert (sent.status_code, sent.headers["location"]) == (303, LIST)
    page = ana.get(LIST).text
    assert "A report on &lt;script&gt;" in page
    assert "<script>alert" not in page
    assert ">Decide<" not in page
    link = re.search(LIST + "/[0-9a-f-]{36}", olga.get("/ui/notices").text)
    assert link is not None
    decision = olga.get(link[0]).text
    assert "&lt;script&gt;" in decision
    assert "at most ε 0 now, and ε 2 after this grant" in words(decision)
    assert "10 answers, ε 0.2 each" in words(decision)
    assert olga.post(link[0], decision="grant", epsilon="1").status_code == 422
    day = "2100-01-01"
    granted = olga.post(link[0], decision="grant", epsilon="1", until=day, reason="One first.")
    assert granted.status_code == 303
    assert f'<time datetime="{day}' in ana.get("/ui/budgets/triangle").text
    assert "One first." in ana.text(LIST)
    assert "was granted" in ana.text("/ui/notices")
    again = olga.post(link[0], decision="refuse", reason="No.")
    assert (again.status_code, "Already decided" in again.text) == (409, True)
    assert ana.post(f"{link[0]}/erase").status_code == 303
    assert "One first." not in olga.text(LIST)
