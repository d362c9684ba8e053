"""The OpenAPI document is valid, complete, and its examples are bodies that the service takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jsonschema
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.http.docs import STATIC
from app.http.openapi import routes_of
from storage.ingest.media import FORMS
from tests.support.service import Service

VERBS = {"get", "put", "post", "patch", "delete"}


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{verb.upper()} {path}", operation)
        for path, item in document["paths"].items()
        for verb, operation in item.items()
        if verb in VERBS
    ]


@pytest.fixture(scope="module")
def document(shared: Callable[[], AbstractContextManager[Service]]) -> dict[str, Any]:
    """The document, which no test changes: generating it takes longer than any test of it."""
    with shared() as service:
        reply = service.client.get("/openapi.json")
    assert reply.status_code == 200
    schema: dict[str, Any] = reply.json()
    return schema


def test_it_is_openapi_3_1_and_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    for reference in re.findall(r'"\$ref": "([^"]+)"', json.dumps(document)):
        target: Any = document
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_operations_have_names_of_their_own_and_a_description(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(names) == len(set(names))
    assert [name for name, operation in operations(document) if not operation["description"]] == []


def test_protected_operations_say_so_and_declare_their_refusals(
    document: dict[str, Any], application: FastAPI
) -> None:
    public = {
        f"{method} {route.path}"
        for route in routes_of(application)
        if route.access.public
        for method in route.methods or ()
    }
    for name, operation in operations(document):
        if name in public:
            assert "security" not in operation
            continue
        assert operation["security"] == [{"key": []}]
        assert {"401", "403", "406", "500"} <= set(operation["responses"]), name
        if "{" in name:
            assert "404" in operation["responses"], name
        if "requestBody" in operation:
            assert {"413", "415", "422"} <= set(operation["responses"]), name
        for status, reply in operation["responses"].items():
            if int(status) >= 400:
                assert list(reply["content"]) == ["application/problem+json"], (name, status)
    assert "HTTPValidationError" not in document["components"]["schemas"]


def examples(operation: dict[str, Any]) -> list[Any]:
    body = operation["requestBody"]["content"].get("application/json", {})
    values = [example["value"] for example in body.get("examples", {}).values()]
    return values + ([body["example"]] if "example" in body else [])


def test_every_json_body_has_examples_that_fit_their_schema(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        if "application/json" not in operation.get("requestBody", {}).get("content", {}):
            continue
        assert examples(operation), name
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        complete = {**schema, "components": document["components"]}
        for example in examples(operation):
            jsonschema.validate(example, complete)


@pytest.mark.long
def test_records_are_described_as_they_are_taken(people: Service, document: dict[str, Any]) -> None:
    """Every media type has an example that matches the example of the registration."""
    paths = document["paths"]
    assert paths["/v1/datasets/{name}/nodes"]["put"]["requestBody"]["content"]["text/csv"][
        "example"
    ]
    body = paths["/v1/datasets/{name}/records"]["put"]["requestBody"]
    assert body["content"].keys() == FORMS.keys()
    described = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", body["description"], re.MULTILINE))
    kinds = paths["/v1/datasets"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    files = body["content"]["text/csv"]["examples"]
    assert described.keys() - {"kind"} == kinds.keys() == files.keys()
    for kind, example in kinds.items():
        registered = example["value"]
        assert people("olga", "POST", "/v1/datasets", json=registered).status_code == 201
        text = files[kind]["value"]
        header, *rows = text.splitlines()
        turned = "\n".join(",".join(line.split(",")[::-1]) for line in (header, *rows))
        for content in (text, turned):
            reply = people.upload("olga", registered["name"], content.encode(), "text/csv")
            assert reply.status_code == 201, reply.text
        if kind != "table":
            named = ", ".join(f"`{name}`" for name in header.split(","))
            assert described[kind] == named
    for media_type, media in body["content"].items():
        if "example" in media:
            content = media["example"]
            text = content if isinstance(content, str) else json.dumps(content)
            reply = people.upload(
                "olga", kinds["graph"]["value"]["name"], text.encode(), media_type
            )
            assert reply.status_code == 201, reply.text


def test_the_models_of_the_service_take_every_example(
    people: Service, document: dict[str, Any]
) -> None:
    callers = {
        "/v1/users": "ada",
        "/v1/datasets": "olga",
        "/v1/datasets/{name}/requests": "ana",
        "/v1/queries": "ana",
        "/v1/quotes": "ana",
    }
    for name, operation in operations(document):
        verb, path = name.split()
        if "requestBody" not in operation or path.endswith(("/records", "/nodes")):
            continue
        who = callers.get(path, "ada" if "users" in path else "olga")
        for example in examples(operation):
            reply = people(who, verb, re.sub(r"{\w+}", "absent", path), json=example)
            # The objects that an example names may be absent or exist already. Only the form of the
            # example must be valid.
            assert reply.status_code in (201, 404, 409), (name, reply.text)


def test_the_bare_address_leads_to_the_documentation(client: TestClient) -> None:
    reply = client.get("/", follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (307, "/docs")


def test_summaries_are_sentences_not_names_of_functions(document: dict[str, Any]) -> None:
    for _, operation in operations(document):
        assert operation["description"].startswith(operation["summary"])


def test_the_documentation_works_without_internet(client: TestClient) -> None:
    page = client.get("/docs", headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "http" not in page.text.replace("html", "")
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|style=", page.text)
    for link in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert client.get(f"/{link}").status_code == 200, link
    for name in ("docs.js", "swagger/swagger-ui.css"):
        text = (STATIC / name).read_text()
        loaded = re.findall(r"(?:url\(|@import|fetch\(|src=)\s*[\"']?(https?:[^)\"']+)", text)
        assert loaded == []
    assert "validatorUrl: null" in (STATIC / "docs.js").read_text()
    assert (STATIC / "swagger" / "LICENSE").exists()


def test_every_reply_carries_the_security_headers(client: TestClient) -> None:
    for path in ("/docs", "/healthz", "/absent", "/v1/me", "/static/docs.js", "/openapi.json"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        # A page may load resources from its own origin only. A JSON reply may load none at all.
        page = path in ("/docs", "/static/docs.js")
        assert ("script-src 'self'" in policy) == page
        assert ("cross-origin-opener-policy" in headers) == page
        assert ("permissions-policy" in headers) == page
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers
