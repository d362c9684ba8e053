"""Certificates: what they claim, what they leave out, and that no changed byte passes."""

from __future__ import annotations

import json
import random
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from accounting.privacy_loss import PrivacyLoss
from app.identity.certificate_key import FILE, CertificateKey
from app.queries.parts.examples import ADULT
from app.queries.selection.body import Selection
from app.usecases.accounts import budgets
from app.usecases.certificates import _noise, _resolved
from privypurse import CertificateInvalid, verify_certificate
from privypurse.cli import cli
from storage.assurance.verification import verify
from storage.journal.certificate_keys import CertificateKeys
from storage.queries import history
from storage.queries.bindings import head_of_cap
from tests.support.service import Service

QUERY = {"kind": "top_k", "k": 2, "utilities": [{"name": "degree"}], "selector": "laplace"}


def test_its_defaults_are_those_of_the_account_that_was_charged() -> None:
    """Accounts that count in ρ as well draw one candidate by another selector."""
    dataset: Any = SimpleNamespace(public=ADULT)
    body: dict[str, Any] = {"kind": "selection", "candidates": {"values_of": "occupation"}}
    body["utilities"] = [{"name": "count"}]
    query, loss = Selection.model_validate_json(json.dumps(body)), PrivacyLoss.parse("0.1")
    for one, selector in ((query, "permute_and_flip"), (query.in_rho(), "exponential")):
        charge = one.price(ADULT, loss).charge().as_charge()
        assert _resolved(query, dataset, charge)["selector"] == selector


def test_a_name_that_the_analyst_chose_is_no_mechanism() -> None:
    dataset: Any = SimpleNamespace(public=None)
    query = {"kind": "tree", "algorithm": "naive_bayes", "class_attribute": "laplace"}
    stated = {"query": query, "charge": {"epsilon": "1", "delta": "0"}, "steps": []}
    noise = _noise(dataset, stated)
    assert (noise["kind"]["title"], noise["mechanisms"]) == ("Private naive Bayes", [])


def test_a_query_that_is_no_longer_offered_is_certified_without_its_kind() -> None:
    stated = {"query": {"kind": "of an earlier release"}, "charge": {}, "steps": ["one"]}
    noise = _noise(SimpleNamespace(public=ADULT), stated)  # type: ignore[arg-type]
    assert noise == {"kind": None, "resolved": {}, "mechanisms": [], "steps": ["one"]}


@pytest.fixture
def answered(people: Service) -> Any:
    """The reply to a query of ana on a dataset of olga."""
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    body = {"dataset": "triangle", "epsilon": "0.5", "query": QUERY}
    reply = people("ana", "POST", "/v1/queries", json=body)
    assert reply.status_code == 201
    return reply


def keys_of(service: Service) -> dict[str, Any]:
    keys: dict[str, Any] = service("ana", "GET", "/v1/certificate-keys").json()
    return keys


def certificate(service: Service, who: str, path: str) -> bytes:
    reply = service(who, "GET", f"/v1/{path}/certificate")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/jose")
    return bytes(reply.content)


def test_the_certificate_of_an_answer(people: Service, answered: Any) -> None:
    reply, keys = answered.json(), keys_of(people)
    path = f"queries/{reply['id']}"
    stated = verify_certificate(certificate(people, "ana", path), keys).statement
    assert stated["reply"] == answered.text
    assert stated["question"] == reply["answer"]["question"]
    assert stated["loss"] == reply["charge"]
    assert stated["receipt"] == reply["receipt"]
    assert stated["unit"]["neighbouring"] == "edge"
    assert stated["dataset"] == {"name": "triangle", "version": 1}
    assert stated["interval"]["confidence"] == reply["answer"]["confidence"]
    assert [one["name"] for one in stated["noise"]["mechanisms"]] == ["laplace"]
    assert "does not show" in stated["claim"]
    for who, status in (("olga", 403), ("otto", 403), ("ada", 403)):
        assert people(who, "GET", f"/v1/{path}/certificate").status_code == status
    people.user("ben", "analyst")
    assert people("ben", "GET", f"/v1/{path}/certificate").status_code == 404


def test_an_id_without_hyphens_names_the_same_file(people: Service, answered: Any) -> None:
    id = answered.json()["id"]
    other = id.replace("-", "")
    for path, form in (("certificate", "jws"), ("answer?format=csv", "csv")):
        reply = people("ana", "GET", f"/v1/queries/{other}/{path}")
        assert reply.status_code == 200
        assert reply.headers["content-disposition"] == f'attachment; filename="{id}.{form}"'


#: The sections and fields of an entry in the public registry of deployments, named as in its
#: schema.
REGISTRY = {
    "basic": {
        *("name", "data_curators", "description", "intended_use", "data_product_type"),
        *("data_product_region", "publication_date", "data_product_sector"),
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        *("privacy_unit", "privacy_unit_details"),
        *("privacy_parameters", "privacy_parameters_details"),
    },
    "deployment_model": {
        *("model_name", "model_name_details", "actors"),
        *("release_type", "release_type_details"),
        *("data_source_type", "data_source_type_details"),
        *("access_type", "access_type_details"),
    },
    "accounting": {"post_processing", "composition"},
    "implementation": {
        *("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
    },
    "administrative": {"registry_authors", "sources", "notes"},
}


@pytest.mark.parametrize(
    ("cap", "variant", "parameters"),
    [
        ({"epsilon": "3"}, "Pure DP", {"epsilon": 3.0, "delta": 0.0}),
        ({"epsilon": "3", "delta": "0.001"}, "Approximate DP", {"epsilon": 3.0, "delta": 0.001}),
        (
            {"epsilon": "3", "delta": "0.001", "composition_delta": "0.00005"},
            "Approximate DP",
            {"epsilon": 3.0, "delta": 0.00105},
        ),
    ],
)
def test_the_registry_reads_the_promise_of_the_cap(
    people: Service, cap: dict[str, str], variant: str, parameters: dict[str, float]
) -> None:
    people.dataset("olga", cap=cap)
    people("olga", "PUT", "/v1/datasets/triangle/budgets/ana", json=cap)
    content = certificate(people, "olga", "datasets/triangle")
    stated = verify_certificate(content, keys_of(people)).statement
    deployment = stated["deployment_registry"]["deployment"]
    assert deployment["dp_variant"]["variant_name"] == variant
    assert deployment["privacy_loss"]["privacy_parameters"] == parameters


def test_the_certificate_of_a_dataset_binds_answers_and_shows_none(
    people: Service, answered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The certificate of a dataset includes an answer only from the first full minute after its
    # release. This test shortens the minute to a microsecond.
    monkeypatch.setattr(history, "MINUTE_US", 1)
    keys = keys_of(people)
    reply = answered.json()
    own = verify_certificate(certificate(people, "ana", f"queries/{reply['id']}"), keys)
    texts = []
    for who in ("olga", "otto"):
        content = certificate(people, who, "datasets/triangle")
        stated = verify_certificate(content, keys).statement
        (bound,) = stated["answers"]
        assert bound["digest"] == own.statement["binding"]["digest"]
        assert bound["loss"]["epsilon"] == "0.5"
        assert stated["loss"]["spent"] == {"epsilon": "0.5", "delta": "0"}
        deployment = stated["deployment_registry"]["deployment"]
        assert deployment["privacy_loss"]["privacy_unit"] == "edge"
        assert deployment["basic"]["intended_use"] is None
        assert {name: set(fields) for name, fields in deployment.items()} == REGISTRY
        assert stated["nist_sp_800_226"]["unit_of_privacy"] == stated["unit"]["hidden"]
        texts.append(json.dumps(stated))
    for text in texts:
        assert own.statement["binding"]["salt"] not in text
        for hidden in ('"selected"', '"values"', '"low"', '"k"', "utilities", "question"):
            assert hidden not in text
    people.user("oscar", "owner")
    assert people("oscar", "GET", "/v1/datasets/triangle/certificate").status_code == 404
    assert people("ana", "GET", "/v1/datasets/triangle/certificate").status_code == 403


def test_no_changed_byte_passes(people: Service, answered: Any, tmp_path: Path) -> None:
    keys = keys_of(people)
    content = certificate(people, "ana", f"queries/{answered.json()['id']}")
    rng = random.Random(20)
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    first, last = content.index(b"."), content.rindex(b".")
    places = {*range(0, len(content), 7), *range(last - 3, len(content)), first - 1, first}
    for place in sorted(places):
        other = rng.choice([one for one in alphabet if one != content[place]])
        for changed in (
            content[:place] + bytes([other]) + content[place + 1 :],
            content[:place] + content[place + 1 :],
            content[:place] + b"\n" + content[place:],
        ):
            with pytest.raises(CertificateInvalid):
                verify_certificate(changed, keys)
    # The last base64 character has unused bits, so other characters decode to the same bytes. They
    # must be refused too.
    for other in alphabet:
        if other != content[-1]:
            with pytest.raises(CertificateInvalid):
                verify_certificate(content[:-1] + bytes([other]), keys)
    for changed in (content + b"\n", content + b".", b"", b"..", content[:-1]):
        with pytest.raises(CertificateInvalid):
            verify_certificate(changed, keys)
    stranger = CertificateKey.open(tmp_path / "elsewhere")
    forged = stranger.signed(b"{}")
    for others in (keys, {"keys": [stranger.public | {"kid": keys["keys"][0]["kid"]}]}, {}):
        with pytest.raises(CertificateInvalid):
            verify_certificate(forged, others)
    unsigned = b"eyJhbGciOiJub25lIn0." + content.split(b".")[1] + b"."
    with pytest.raises(CertificateInvalid):
        verify_certificate(unsigned, keys)


def test_the_command_verifies_offline(people: Service, answered: Any, tmp_path: Path) -> None:
    file, keys = tmp_path / "answer.jws", tmp_path / "keys.json"
    content = certificate(people, "ana", f"queries/{answered.json()['id']}")
    file.write_bytes(content)
    keys.write_text(json.dumps(keys_of(people)))
    command = ["verify-certificate", str(file), "--key", str(keys)]
    result = CliRunner().invoke(cli, command)
    assert (result.exit_code, "is valid" in result.stderr) == (0, True)
    assert json.loads(result.stdout)["query"] == answered.json()["id"]
    file.write_bytes(content[:-2] + content[-1:])
    assert CliRunner().invoke(cli, command).exit_code == 1


def test_the_key_is_a_secret_and_every_public_key_is_remembered(people: Service) -> None:
    services = people.client.app.state.services  # type: ignore[attr-defined]
    folder = services.settings.data
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    again = CertificateKey.open(folder)
    assert again.public == services.certificate_key.public
    assert "d" not in again.public
    other = CertificateKey.open(folder / "of another replica")
    replica = CertificateKeys(services.database)
    for key in (other.public, other.public, again.public):
        replica.state(key)
    # Keys that another process stated later are listed too, and the newest key comes first.
    assert services.certificate_keys.all() == [other.public, again.public]
    assert CertificateKeys(services.database).all() == [other.public, again.public]
    audited = people("otto", "GET", "/v1/audit").json()["items"]
    stated = [one for one in audited if one["action"] == "service.certificate_key"]
    assert [one["subject"] for one in stated] == [other.public["kid"], again.public["kid"]]
    assert verify(services.database).valid


@pytest.mark.usefixtures("answered")
def test_a_charge_between_two_reads_is_in_loss_and_head_or_in_neither(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"dataset": "triangle", "epsilon": "0.25", "query": QUERY}
    read, charges = budgets.of_dataset, iter((201,))

    def read_and_charge(*arguments: Any) -> Any:
        whole = read(*arguments)
        for status in charges:
            assert people("ana", "POST", "/v1/queries", json=body).status_code == status
        return whole

    monkeypatch.setattr(budgets, "of_dataset", read_and_charge)
    content = certificate(people, "olga", "datasets/triangle")
    stated = verify_certificate(content, keys_of(people)).statement
    services = people.client.app.state.services  # type: ignore[attr-defined]
    entries, head = head_of_cap(services.database, services.datasets.find("triangle").id)
    assert stated["ledger"] == {"entries": entries, "head": head.hex()}
    assert stated["loss"]["spent"]["epsilon"] == "0.75"


@pytest.mark.usefixtures("answered")
def test_the_certificate_of_a_dataset_takes_a_slot(people: Service) -> None:
    services = people.client.app.state.services  # type: ignore[attr-defined]
    olga = services.users.find("olga").id
    with services.reads.slot(olga), services.reads.slot(olga):
        assert people("olga", "GET", "/v1/datasets/triangle/certificate").status_code == 429
