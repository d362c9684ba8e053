"""An owner attaches a table of a source that the operator named, and pulls it as an upload."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.config.settings import Settings
from app.config.sources import read_sources
from tests.support.browser import SignIn, sign_in
from tests.support.service import Service

__all__ = ["sign_in"]

TABLE = {
    "kind": "table", "neighbouring": "add_remove", "max_rows": 9, "nodes": None,
    "attributes": [{"name": "age", "kind": "numeric", "bounds": [0, 120]}],
}  # fmt: skip


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """The folder of the source ``shop``."""
    (tmp_path / "tables").mkdir()
    return tmp_path / "tables"


@pytest.fixture
def settings(settings: Settings, tmp_path: Path, tables: Path) -> Settings:
    file = tmp_path / "sources.toml"
    file.write_text(
        f'[shop]\nkind = "parquet"\nfolder = "{tables}"\nowners = ["olga"]\n'
        '[lab]\nkind = "postgresql"\ndsn = "postgresql://reader:Zw9@127.0.0.1:1/lab"\n'
        'owners = ["olga"]\n'
        f'[bank]\nkind = "parquet"\nfolder = "{tables}"\nowners = ["oskar"]\n'
    )
    return settings.model_copy(update={"sources": file})


def ages(folder: Path, *numbers: int) -> None:
    pq.write_table(pa.table({"age": numbers}), folder / "visits.parquet")


def registered(people: Service) -> None:
    body = {"name": "visits", "cap": {"epsilon": "10"}, **TABLE}
    del body["nodes"]
    assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201


def test_a_pull_is_an_upload_of_the_attached_table(people: Service, tables: Path) -> None:
    ages(tables, 30, 40)
    registered(people)
    listed = people("olga", "GET", "/v1/sources").json()["items"]
    assert listed == [
        {"name": "shop", "kind": "parquet", "tables": ["visits"]},
        {"name": "lab", "kind": "postgresql", "tables": None},
    ]
    path = "/v1/datasets/visits/source"
    assert people("olga", "GET", path).status_code == 404
    assert people("olga", "POST", f"{path}/pull").status_code == 404
    body = {"source": "shop", "table": "visits"}
    attached = people("olga", "PUT", path, json=body)
    assert attached.json() == {"dataset": "visits", **body}
    assert people("olga", "GET", path).json() == {"dataset": "visits", **body}

    pulled = people("olga", "POST", f"{path}/pull")
    assert (pulled.status_code, pulled.json()["version"]) == (201, 1)
    people.grant("olga", "visits", "ana", "1")
    ages(tables, 30, 40, 50)
    assert people("olga", "POST", f"{path}/pull").json()["version"] == 2
    assert people.spent() == "0"  # The account is not changed by a new version.

    assert people("ana", "GET", "/v1/datasets/visits").text.find("shop") == -1

    # A table that does not fit its description is refused like any upload, and the version before
    # it stays.
    ages(tables, 30, 400)
    refused = people("olga", "POST", f"{path}/pull")
    assert refused.json()["errors"][0]["loc"] == ["row", 2, "age"]
    (tables / "visits.parquet").unlink()
    absent = people("olga", "POST", f"{path}/pull")
    assert (absent.status_code, absent.json()["type"]) == (502, "/problems/source-failed")
    assert people("olga", "GET", "/v1/datasets/visits").json()["version"] == 2

    assert people("olga", "DELETE", path).status_code == 204
    assert people("olga", "DELETE", path).status_code == 404
    lines = people("otto", "GET", "/v1/audit").json()["items"]
    details = [line["detail"] for line in lines if line["action"] == "dataset.source"]
    assert details == [{"source": None}, {"source": "shop"}]


def test_the_page_attaches_and_pulls(people: Service, tables: Path, sign_in: SignIn) -> None:
    ages(tables, 30, 40)
    registered(people)
    browser = sign_in("olga")
    path = "/ui/datasets/visits/source"
    assert "No source" not in browser.text(path)
    assert "lab cannot be listed now" in browser.text(path)
    assert browser.post(path, choice="bank/visits").status_code == 422
    assert browser.post(path, choice="shop/visits").status_code == 303
    assert "Attached: table visits of shop" in browser.text(path)
    pulled = browser.post(f"{path}/pull")
    assert pulled.headers["location"] == "/ui/datasets/visits"
    assert people("olga", "GET", "/v1/datasets/visits").json()["version"] == 1
    ages(tables, 400)
    refused = browser.post(f"{path}/pull")
    assert refused.status_code == 422
    assert "outside the attribute" in refused.text
    assert browser.post(path, choice="").status_code == 303
    assert "Attached" not in browser.text(path)


@pytest.mark.parametrize(
    ("source", "table", "place"),
    [
        ("bank", "visits", "source"),
        ("none", "visits", "source"),
        ("shop", "../tables/visits", "table"),
        ("shop", "visits; DROP TABLE x", "table"),
    ],
)
def test_only_what_the_operator_named_can_be_attached(
    people: Service, tables: Path, source: str, table: str, place: str
) -> None:
    ages(tables, 30)
    registered(people)
    body = {"source": source, "table": table}
    reply = people("olga", "PUT", "/v1/datasets/visits/source", json=body)
    assert reply.status_code == 422
    [error] = reply.json()["errors"]
    assert error["loc"] == ["body", place]
    assert table not in reply.text


def test_a_source_that_cannot_be_reached_repeats_no_address(people: Service) -> None:
    registered(people)
    body = {"source": "lab", "table": "public.visits"}
    reply = people("olga", "PUT", "/v1/datasets/visits/source", json=body)
    assert (reply.status_code, reply.headers["Retry-After"]) == (502, "5")
    assert "Zw9" not in reply.text
    assert "127.0.0.1" not in reply.text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not toml", "line 1"),
        ('[a]\nkind = "parquet"\nfolder = "/"\nowners = []', "a.parquet.owners"),
        ('[a]\nkind = "postgresql"\ndsn = "Zw9"\nowners = ["o"]', "a.postgresql.dsn"),
        ('[a]\nkind = "mysql"\nowners = ["o"]', "a: "),
        ('["a b"]\nkind = "parquet"\nfolder = "/"\nowners = ["o"]', "a b"),
    ],
)
def test_a_wrong_file_of_sources_is_refused_without_its_secrets(
    tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / "sources.toml").write_text(text)
    with pytest.raises(ValueError, match=reason) as refused:
        read_sources(tmp_path / "sources.toml")
    assert "Zw9" not in str(refused.value)
