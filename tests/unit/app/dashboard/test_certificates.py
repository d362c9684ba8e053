"""The links to certificates, for those who may have them."""

from __future__ import annotations

from privypurse import verify_certificate
from tests.support.browser import SignIn
from tests.support.service import Service

QUERY = {"kind": "selection", "utilities": [{"name": "degree"}]}


def test_pages_link_to_certificates(people: Service, sign_in: SignIn) -> None:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    body = {"dataset": "triangle", "epsilon": "0.5", "query": QUERY}
    answered = people("ana", "POST", "/v1/queries", json=body).json()
    keys = people("ana", "GET", "/v1/certificate-keys").json()
    query, dataset = f"/ui/queries/{answered['id']}", "/ui/datasets/triangle"
    for who, page in (("ana", query), ("olga", dataset), ("otto", dataset)):
        browser = sign_in(who)
        text = browser.get(page).text
        assert f'href="{page}/certificate"' in text
        assert "claims" in text
        assert verify_certificate(browser.get(f"{page}/certificate").content, keys).statement
    assert "certificate" not in sign_in("ana").get(dataset).text
    id = answered["id"]
    other = id.replace("-", "")
    for path, form in (("certificate", "jws"), ("answer", "csv")):
        reply = sign_in("ana").get(f"/ui/queries/{other}/{path}")
        assert reply.headers["content-disposition"] == f'attachment; filename="{id}.{form}"'
