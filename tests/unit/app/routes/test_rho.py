"""Accounts with a δ_c over HTTP: the promise, the charges, what still fits, and refusals."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from accounting.account import Account, Limit
from accounting.privacy_loss import PrivacyLoss, format_units
from accounting.rho import pure_femto
from app.queries import QUERY
from app.usecases.accounts import fits
from app.usecases.accounts.fits import more_by_kind
from tests.support.service import Service
from tests.unit.app.queries.test_statistics import ROWS, TABLE

DEGREE: dict[str, Any] = {
    "kind": "selection",
    "utilities": [{"name": "degree"}],
    "sensitivity": "global",
    "selector": "permute_and_flip",
}
GRANT = {"epsilon": "4", "composition_delta": "0.000001"}
LIMIT = "0.311064954940835"


def grant(people: Service, name: str, **fields: Any) -> Any:
    return people("olga", "PUT", f"/v1/datasets/{name}/budgets/ana", json=GRANT | fields)


@pytest.fixture
def shared(people: Service) -> str:
    """A dataset whose cap has a δ_c too."""
    name: str = people.dataset("olga", cap=GRANT | {"epsilon": "8"})
    assert grant(people, name).status_code == 200
    return name


def body(name: str, epsilon: str) -> dict[str, Any]:
    return {"dataset": name, "epsilon": epsilon, "query": DEGREE}


def test_an_allowance_states_its_promise(people: Service, shared: str) -> None:
    account = grant(people, shared).json()
    assert account["allowance"] == {
        "epsilon": "4",
        "delta": "0",
        "rho": LIMIT,
        "composition_delta": "0.000001",
    }
    assert account["spent"] == {"epsilon": "0", "delta": "0", "rho": "0"}
    assert account["remaining"] == {"epsilon": "4", "delta": "0", "rho": LIMIT}
    assert account["largest_epsilon"] == "4"
    (line,) = people("olga", "GET", f"/v1/datasets/{shared}/budgets").json()["items"]
    assert line["allowance"] == account["allowance"]


def test_the_exposure_is_the_promise_of_the_cap(people: Service, shared: str) -> None:
    """Sums of ε bound nothing here; δ_c is on top of δ."""
    path = f"/v1/datasets/{shared}/budgets"
    at_most = people("olga", "GET", path).json()["exposure"]["at_most"]
    assert at_most == {"epsilon": "8", "delta": "0.000001"}
    pure = people.dataset("olga", name="pure")
    people.grant("olga", pure, "ana", "3")
    assert people("olga", "GET", "/v1/datasets/pure/budgets").json()["exposure"]["at_most"] == {
        "epsilon": "3",
        "delta": "0",
    }


def test_the_exposure_keeps_the_largest_delta_that_the_cap_ever_had(
    people: Service, shared: str
) -> None:
    """Answers may have decided about the change, so all together keep to the highest limits."""
    for composition in ("0.000000001", "0", "0.0000001"):
        people(
            *("olga", "PUT", f"/v1/datasets/{shared}/cap"), json={"composition_delta": composition}
        )
        budgets = people("olga", "GET", f"/v1/datasets/{shared}/budgets").json()
        assert budgets["cap"]["allowance"].get("composition_delta", "0") == composition
        assert budgets["exposure"]["at_most"] == {"epsilon": "8", "delta": "0.000001"}


def test_quotes_say_how_many_more_fit(people: Service, shared: str) -> None:
    quote = people("ana", "POST", "/v1/quotes", json=body(shared, "0.05")).json()
    assert quote["charge"]["rho"] == "0.001249739648422"
    assert quote["steps"][0]["rho"] == "0.001249739648422"
    assert (quote["fits_more"], quote["affordable"]) == (248, True)
    # One query of ε = 3 fits the limit in ε alone. A second one fits neither this limit nor that in
    # ρ.
    assert people("ana", "POST", "/v1/quotes", json=body(shared, "3")).json()["fits_more"] == 1


def test_queries_are_answered_by_epsilon_or_by_rho(people: Service, shared: str) -> None:
    """One query of the whole ε exceeds the limit in ρ, and nothing fits any more."""
    reply = people("ana", "POST", "/v1/queries", json=body(shared, "4")).json()
    charged = Decimal(reply["charge"]["rho"])
    assert reply["remaining"] == {"epsilon": "0", "delta": "0", "rho": "0"}
    refused = people("ana", "POST", "/v1/queries", json=body(shared, "0.05"))
    assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (
        403,
        "budget-exhausted",
    )
    assert refused.json()["remaining"] == reply["remaining"]
    assert refused.json()["charge"]["rho"] == "0.001249739648422"
    (account,) = people("ana", "GET", "/v1/budgets").json()["items"]
    assert Decimal(account["spent"]["rho"]) == charged > Decimal(LIMIT)
    assert account["remaining"] == {"epsilon": "0", "delta": "0", "rho": "0"}
    assert account["largest_epsilon"] == "0"


def test_rho_admits_what_epsilon_no_longer_does(people: Service) -> None:
    grants = {"epsilon": "0.5", "composition_delta": "0.000001"}
    name = people.dataset("olga", cap=grants)
    assert grant(people, name, **grants).status_code == 200
    for _ in range(26):
        assert people("ana", "POST", "/v1/queries", json=body(name, "0.02")).status_code == 201
    (account,) = people("ana", "GET", "/v1/budgets").json()["items"]
    assert account["spent"]["epsilon"] == "0.52"
    assert account["remaining"]["epsilon"] == "0"
    refused = people("ana", "POST", "/v1/queries", json=body(name, "0.4")).json()
    assert refused["remaining"] == account["remaining"]
    assert refused["remaining"]["rho"] > "0"
    largest = refused["largest_affordable"]["epsilon"]
    assert largest == account["largest_epsilon"]
    assert 0 < Decimal(largest) < Decimal("0.1")
    # The ledger is still valid after charges above the limit in ε, and its entries state ρ.
    assert people("olga", "GET", "/v1/ledger/verification").json()["first_bad"] is None
    entry = people("ana", "GET", "/v1/ledger").json()["items"][0]
    assert entry["rho"] == format_units(pure_femto(20_000_000), 15)
    # Without δ_c, the δ for many queries, the account counts in ε alone. The charges so far exceed
    # the new limit of ε = 0.5.
    lost = grant(people, name, epsilon="0.5", composition_delta="0")
    assert lost.status_code == 409
    assert lost.json()["spent"] == account["spent"]
    assert lost.json()["composition_delta"] == "0.000001"
    assert "leaves out the composition_delta 0.000001" in lost.json()["detail"]
    # This new limit keeps δ_c, but its ε is below what is charged. So the refusal does not mention
    # δ_c.
    low = grant(people, name, epsilon="0.1").json()
    assert "composition_delta" not in {*low, *low["detail"].split()}
    assert grant(people, name, epsilon="0.52", composition_delta="0").status_code == 200


def test_budgets_say_how_many_more_fit_by_kind(people: Service, shared: str) -> None:
    """Of one query of each kind at ε = 0.1, as a quote for it says."""
    (own,) = people("ana", "GET", "/v1/budgets").json()["items"]
    auto = {**DEGREE, "selector": "auto"}
    sent = {**body(shared, "0.1"), "query": auto}
    quote = people("ana", "POST", "/v1/quotes", json=sent).json()
    assert own["fits_more"]["selection"] == quote["fits_more"] == 248
    named = people("ana", "POST", "/v1/quotes", json=body(shared, "0.1")).json()
    assert named["fits_more"] == 62  # Permute-and-flip has four times the ρ of the default.
    assert own["fits_more"].keys() == {"selection", "top_k", "statistic"}
    assert grant(people, shared).json()["fits_more"] == own["fits_more"]
    budgets = people("olga", "GET", f"/v1/datasets/{shared}/budgets").json()
    assert budgets["items"][0]["fits_more"] == own["fits_more"]
    # By ε the cap of the dataset takes 80 more queries of ε = 0.1, and by ρ more than 200. The
    # larger number counts.
    assert budgets["cap"]["fits_more"]["selection"] > 200
    for _ in range(2):
        assert people("ana", "POST", "/v1/queries", json=body(shared, "0.1")).status_code == 201
    (own,) = people("ana", "GET", "/v1/budgets").json()["items"]
    assert own["fits_more"]["selection"] == 240


@pytest.mark.usefixtures("shared")
def test_budgets_price_the_kinds_once_for_each_dataset(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced: list[str] = []

    def price(body: Any, **options: Any) -> Any:
        priced.append(body["kind"])
        return QUERY.validate_python(body, **options)

    monkeypatch.setattr(fits, "QUERY", SimpleNamespace(validate_python=price))
    other = people.dataset("olga", name="other", cap=GRANT)
    assert grant(people, other).status_code == 200
    once = len(priced)
    assert set(priced) >= {"selection", "top_k", "statistic"}
    for _ in range(3):
        items = people("ana", "GET", "/v1/budgets").json()["items"]
        assert items[0]["fits_more"] == items[1]["fits_more"]
        assert people("olga", "GET", f"/v1/datasets/{other}/budgets").is_success
    # Listing the budgets priced nothing again. The queries of the first dataset were priced before
    # the test replaced the function that prices them.
    assert len(priced) == once


def test_a_cap_counts_by_the_defaults_of_its_allowances(people: Service) -> None:
    """An allowance in ε alone draws by permute-and-flip, of four times the ρ."""
    name = people.dataset("olga", cap=GRANT)
    people.user("ben", "analyst")

    def fits() -> int:
        budgets = people("olga", "GET", f"/v1/datasets/{name}/budgets").json()
        number: int = budgets["cap"]["fits_more"]["selection"]
        return number

    # No analyst has an allowance yet. So the cap counts by permute-and-flip, the selector with the
    # larger ρ.
    assert fits() == 62
    assert grant(people, name).status_code == 200
    assert fits() == 248
    people.grant("olga", name, "ben", "4")
    assert fits() == 62
    auto = {**body(name, "0.1"), "query": {**DEGREE, "selector": "auto"}}
    # Ben's own allowance of ε = 4 takes 40 queries of ε = 0.1.
    assert people("ben", "POST", "/v1/quotes", json=auto).json()["fits_more"] == 40
    promised = people("olga", "PUT", f"/v1/datasets/{name}/cap", json={"composition_delta": "1e-9"})
    assert promised.json()["fits_more"]["selection"] == 41


def test_a_kind_that_some_defaults_do_not_answer_is_left_out() -> None:
    account = Account(Limit(10), PrivacyLoss(0))
    cheap, dear = PrivacyLoss(2), PrivacyLoss(5)
    assert more_by_kind(account, [{"a": cheap, "b": cheap}, {"a": dear}]) == {"a": 2}


def test_histories_count_rho(people: Service, shared: str) -> None:
    assert people("ana", "POST", "/v1/queries", json=body(shared, "0.05")).status_code == 201
    for by in ("day", "kind", "mechanism"):
        path = f"/v1/budgets/{shared}/history?by={by}"
        (point,) = people("ana", "GET", path).json()["items"]
        charged = {"epsilon": "0.05", "delta": "0", "rho": "0.001249739648422"}
        assert (point["queries"], point["charged"]) == (1, charged)
        assert point.keys() == {"label", "queries", "charged"}


def test_a_cap_that_counts_in_rho_refuses_with_rho(people: Service) -> None:
    name = people.dataset("olga", cap=GRANT | {"epsilon": "1"})
    assert grant(people, name).status_code == 200
    refused = people("ana", "POST", "/v1/queries", json=body(name, "2")).json()
    assert refused["type"] == "/problems/cap-exhausted"
    assert refused["charge"].keys() == {"epsilon", "delta", "rho"}


def test_a_limit_over_all_datasets_counts_in_epsilon_alone(people: Service, shared: str) -> None:
    path = "/v1/users/ana/budget"
    refused = people("ada", "PUT", path, json=GRANT)
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert "composition_delta belongs to the allowances and the caps" in error["msg"]
    assert people("ada", "PUT", path, json={"epsilon": "0.5"}).status_code == 200
    assert people("ana", "POST", "/v1/queries", json=body(shared, "0.4")).status_code == 201
    # The allowance would take this query by ρ, but the limit over all datasets counts in ε alone.
    refused = people("ana", "POST", "/v1/queries", json=body(shared, "0.2")).json()
    assert refused["remaining"] == {"epsilon": "0.1", "delta": "0"}


def test_the_cap_gets_its_own_delta_later(people: Service) -> None:
    name = people.dataset("olga", cap={"epsilon": "4"})
    path = f"/v1/datasets/{name}/cap"
    changed = people("olga", "PUT", path, json={"composition_delta": "0.000001"})
    assert changed.json()["allowance"]["rho"] == LIMIT
    assert people("ana", "GET", f"/v1/datasets/{name}").status_code == 404
    described = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert described["cap"]["composition_delta"] == "0.000001"
    for who, status in (("ana", 403), ("otto", 403)):
        assert people(who, "PUT", path, json={"composition_delta": "0"}).status_code == status
    assert people("olga", "PUT", path, json={"composition_delta": "0"}).status_code == 200


def test_gaussian_noise_is_allowed_at_allowances_and_caps(people: Service) -> None:
    name = people.dataset("olga", cap=GRANT | {"gaussian": True})
    described = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert described["cap"]["gaussian"] is True
    assert grant(people, name, gaussian=True).json()["allowance"]["gaussian"] is True
    assert "gaussian" not in grant(people, name).json()["allowance"]
    path, promise = f"/v1/datasets/{name}/cap", {"composition_delta": "0.000001"}
    assert "gaussian" not in people("olga", "PUT", path, json=promise).json()["allowance"]
    allowed = people("olga", "PUT", path, json=promise | {"gaussian": True})
    assert allowed.json()["allowance"]["gaussian"] is True
    for change in (
        {"composition_delta": "0", "gaussian": True},
        {"composition_delta": "0.001", "gaussian": True},  # The owner must allow so large a δ.
    ):
        assert people("olga", "PUT", path, json=change).status_code == 422
    tiny = people.dataset("olga", cap={"epsilon": "0"}, name="tiny")
    change = {"composition_delta": "1e-18", "gaussian": True}
    refused = people("olga", "PUT", f"/v1/datasets/{tiny}/cap", json=change)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["loc"] == ["gaussian"]
    assert people("olga", "GET", "/v1/ledger/verification").json()["first_bad"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {"composition_delta": "0.001"},
        {"composition_delta": "0.01", "allow_large_delta": True},
        {"epsilon": "1001"},
        {"composition_delta": -1},
        {"gaussian": True, "composition_delta": "0"},
        {"gaussian": True, "epsilon": "0", "composition_delta": "1e-18"},
        {"gaussian": "yes"},
    ],
)
def test_a_careless_delta_is_refused(people: Service, fields: dict[str, Any]) -> None:
    name = people.dataset("olga")
    assert grant(people, name, **fields).status_code == 422
    if fields.get("composition_delta") == "0.001":
        assert grant(people, name, **fields, allow_large_delta=True).status_code == 200


def test_an_account_without_delta_is_as_before(people: Service) -> None:
    name = people.dataset("olga")
    people.grant("olga", name, "ana", "2")
    (account,) = people("ana", "GET", "/v1/budgets").json()["items"]
    assert account["allowance"] == account["remaining"] == {"epsilon": "2", "delta": "0"}
    assert account["spent"] == {"epsilon": "0", "delta": "0"}
    assert not {"largest_epsilon", "fits_more"} & account.keys()
    quote = people("ana", "POST", "/v1/quotes", json=body(name, "0.05")).json()
    assert quote["fits_more"] == 40
    answer = people("ana", "POST", "/v1/queries", json=body(name, "0.05")).json()
    assert answer["remaining"] == {"epsilon": "1.95", "delta": "0"}
    refused = people("ana", "POST", "/v1/queries", json=body(name, "3")).json()
    assert refused["remaining"] == answer["remaining"]
    assert refused["charge"] == {"epsilon": "3", "delta": "0"}
    (point,) = people("ana", "GET", f"/v1/budgets/{name}/history?by=kind").json()["items"]
    assert point["charged"] == {"epsilon": "0.05", "delta": "0"}
    assert grant(people, name, epsilon="0.01", composition_delta="0").json()["spent"] == {
        "epsilon": "0.05",
        "delta": "0",
    }


CELLS: dict[str, Any] = {"kind": "table", "by": ["town"], "aggregates": [{"name": "count"}]}
PROMISE = {"epsilon": "10", "composition_delta": "0.000001"}


@pytest.fixture
def staff(people: Service) -> Service:
    """A table whose cap and allowance take Gaussian noise."""
    allowed = PROMISE | {"gaussian": True}
    assert people("olga", "POST", "/v1/datasets", json=TABLE | {"cap": allowed}).status_code == 201
    assert people.upload("olga", "staff", ROWS.encode()).status_code == 201
    assert grant(people, "staff", **allowed).status_code == 200
    return people


def in_rho(rho: str = "0.05", **fields: Any) -> dict[str, Any]:
    return {"dataset": "staff", "rho": rho, "query": CELLS} | fields


def test_a_body_that_names_rho_is_charged_in_rho_alone(staff: Service) -> None:
    quote = staff("ana", "POST", "/v1/quotes", json=in_rho()).json()
    assert quote["charge"]["epsilon"] is None
    assert (quote["charge"]["rho"], quote["affordable"], quote["fits_more"]) == ("0.05", True, 30)
    reply = staff("ana", "POST", "/v1/queries", json=in_rho(), headers={"Idempotency-Key": "g"})
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert body["charge"] == quote["charge"]
    assert body["steps"] == quote["steps"]
    assert [one["epsilon"] for one in body["steps"]] == [None]
    assert body["answer"]["noise"][0]["law"] == "discrete_gaussian"
    assert body["answer"]["noise"][0]["scale"] == pytest.approx(10**0.5, rel=1e-3)
    again = staff("ana", "POST", "/v1/queries", json=in_rho(), headers={"Idempotency-Key": "g"})
    assert again.content == reply.content
    for other in (in_rho("0.06"), {**in_rho(epsilon="0.05"), "rho": None}):
        reused = staff("ana", "POST", "/v1/queries", json=other, headers={"Idempotency-Key": "g"})
        assert reused.status_code == 422
    # After one charge in ρ alone the account counts in ρ alone. Its ρ takes three queries of ε = 1,
    # while its ε would have taken ten.
    (account,) = staff("ana", "GET", "/v1/budgets").json()["items"]
    assert account["spent"] == {"epsilon": "0", "delta": "0", "rho": "0.05"}
    assert account["remaining"]["epsilon"] == "0"
    one = {"dataset": "staff", "epsilon": "1", "query": CELLS}
    assert staff("ana", "POST", "/v1/quotes", json=one).json()["fits_more"] == 3
    (stored,) = staff("ana", "GET", "/v1/queries").json()["items"]
    assert stored["charge"] == body["charge"]
    entry = staff("ana", "GET", "/v1/ledger").json()["items"][0]
    assert (entry["epsilon"], entry["rho"]) == (None, "0.05")
    for by in ("day", "kind"):
        (point,) = staff("ana", "GET", f"/v1/budgets/staff/history?by={by}").json()["items"]
        assert point["charged"] == {"epsilon": None, "delta": "0", "rho": "0.05"}
    opened = staff("olga", "GET", "/v1/ledger?kind=genesis").json()["items"]
    # The first entry of an account states its limit, whose ε is finite, unlike that of a charge in
    # ρ.
    assert {one["epsilon"] for one in opened} == {"10"}
    assert staff("olga", "GET", "/v1/ledger/verification").json()["first_bad"] is None


def test_rho_is_for_accounts_that_allow_it(staff: Service) -> None:
    grant(staff, "staff", **PROMISE)
    refused = staff("ana", "POST", "/v1/queries", json=in_rho())
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/budget-exhausted")
    problem = refused.json()
    assert problem["charge"]["epsilon"] is None
    assert problem["account"] == "analyst"
    assert problem["detail"].startswith("the allowance for this dataset does not allow Gaussian")
    assert problem["largest_affordable"] == {"epsilon": None, "delta": "0", "rho": "0"}
    quote = staff("ana", "POST", "/v1/quotes", json=in_rho()).json()
    assert (quote["fits_more"], quote["affordable"]) == (0, False)
    assert quote["reason"] == problem["detail"]
    grant(staff, "staff", **PROMISE, gaussian=True)
    large = staff("ana", "POST", "/v1/queries", json=in_rho("2")).json()
    assert large["detail"] == (
        "the allowance for this dataset has too little rho left for this charge"
    )
    assert large["largest_affordable"]["rho"] == large["remaining"]["rho"] == "1.539278763866728"
    assert staff("ana", "POST", "/v1/quotes", json=in_rho()).json()["reason"] is None
    cap = {"composition_delta": "0.000001"}
    assert staff("olga", "PUT", "/v1/datasets/staff/cap", json=cap).status_code == 200
    capped = staff("ana", "POST", "/v1/queries", json=in_rho())
    assert (capped.status_code, capped.json()["type"]) == (403, "/problems/cap-exhausted")
    assert capped.json()["detail"].startswith("the cap of the dataset does not allow Gaussian")
    assert staff("ada", "PUT", "/v1/users/ana/budget", json={"epsilon": "1"}).status_code == 200
    overall = staff("ana", "POST", "/v1/queries", json=in_rho()).json()
    assert overall["account"] == "analyst_total"
    assert overall["detail"].startswith(
        "the analyst's limit over all datasets counts in epsilon alone"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon": "0.1"},
        {"rho": None},
        {"rho": "0"},
        {"rho": "1e-16"},
        {"rho": "1000.1"},
        {"query": {"kind": "statistic", "statistic": "count"}},
        {"query": CELLS | {"delta": "0.001"}},
    ],
)
def test_rho_is_one_amount_of_kinds_with_gaussian_noise(
    staff: Service, fields: dict[str, Any]
) -> None:
    for path in ("queries", "quotes"):
        assert staff("ana", "POST", f"/v1/{path}", json=in_rho(**fields)).status_code == 422


@pytest.mark.parametrize("algorithm", ["id3", "forest", "naive_bayes"])
def test_trees_are_learned_from_counts_with_gaussian_noise(staff: Service, algorithm: str) -> None:
    query = {"kind": "tree", "algorithm": algorithm, "class_attribute": "town"}
    quote = staff("ana", "POST", "/v1/quotes", json=in_rho("0.5", query=query)).json()
    assert "expected_best" not in quote["accuracy"]
    reply = staff("ana", "POST", "/v1/queries", json=in_rho("0.5", query=query))
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert (body["charge"], body["steps"]) == (quote["charge"], quote["steps"])
    assert body["charge"]["epsilon"] is None
    assert body["answer"]["confidence"] == 0.95
    evolved = {**query, "algorithm": "evolutionary", "positive_class": "a"}
    refused = staff("ana", "POST", "/v1/quotes", json=in_rho("0.5", query=evolved))
    assert refused.status_code == 422


@pytest.mark.parametrize("encoding", ["one_hot", "learned_distance"])
def test_clusters_are_found_by_sums_with_gaussian_noise(staff: Service, encoding: str) -> None:
    query = {"kind": "clustering", "clusters": 2, "encoding": encoding, "starts": 1}
    quote = staff("ana", "POST", "/v1/quotes", json=in_rho("0.5", query=query)).json()
    assert "Gaussian noise of standard deviation" in quote["accuracy"]["explanation"]
    reply = staff("ana", "POST", "/v1/queries", json=in_rho("0.5", query=query))
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert (body["charge"], body["steps"]) == (quote["charge"], quote["steps"])
    assert len(body["answer"]["centres"]) == len(body["answer"]["sizes"]["value"]) == 2


@pytest.mark.parametrize("counts_rho", [True, False])
def test_accounts_that_count_in_rho_have_defaults_that_cost_less_of_it(
    people: Service, counts_rho: bool
) -> None:
    """A selection of one candidate is by the exponential mechanism then.

    A leaf of a tree that stops early takes what its path has left of ρ, and not of ε.
    """
    assert people("olga", "POST", "/v1/datasets", json=TABLE | {"cap": PROMISE}).status_code == 201
    assert people.upload("olga", "staff", ROWS.encode()).status_code == 201
    allowed = PROMISE if counts_rho else {"epsilon": "10", "composition_delta": "0"}
    assert grant(people, "staff", **allowed).status_code == 200
    one = {"kind": "selection", "candidates": {"values_of": "town"}}
    one["utilities"] = [{"name": "count"}]
    body = {"dataset": "staff", "epsilon": "0.1", "query": one}
    quote = people("ana", "POST", "/v1/quotes", json=body).json()
    reply = people("ana", "POST", "/v1/queries", json=body).json()
    selector = "exponential" if counts_rho else "permute_and_flip"
    assert quote["resolved"]["selector"] == reply["answer"]["resolved"]["selector"] == selector
    assert (quote["charge"], quote["steps"]) == (reply["charge"], reply["steps"])
    assert quote["charge"]["epsilon"] == "0.1"
    rho = Decimal(quote["charge"]["rho"])
    assert rho == Decimal("0.00125") if counts_rho else rho > Decimal("0.0049")
    assert reply["query"]["selector"] == "auto"
    certificate = people("ana", "GET", f"/v1/queries/{reply['id']}/certificate")
    assert certificate.status_code == 200, certificate.text
    tree = {"kind": "tree", "class_attribute": "town", "max_depth": 2, "selector": "exponential"}
    grown = {"dataset": "staff", "epsilon": "0.3", "query": tree}
    quote = people("ana", "POST", "/v1/quotes", json=grown).json()
    reply = people("ana", "POST", "/v1/queries", json=grown).json()
    assert quote["charge"] == reply["charge"]
    least = "0.005967122920078" if counts_rho else "0.038781615899585"
    assert quote["charge"]["rho"] == least
    rest = "what is left of ρ" if counts_rho else "all that is left"
    assert rest in quote["steps"][-1]["what"]


def test_the_largest_rho_has_a_price(staff: Service) -> None:
    """A search for the ε of this ρ has no end where every charge is the largest."""
    quote = staff("ana", "POST", "/v1/quotes", json=in_rho("1000"))
    assert quote.status_code == 200, quote.text
    assert not quote.json()["affordable"]


def test_distances_are_learned_from_tables_with_gaussian_noise(staff: Service) -> None:
    query = {"kind": "distance", "context": "max_relevance", "context_size": 1, "target": "town"}
    quote = staff("ana", "POST", "/v1/quotes", json=in_rho("0.5", query=query)).json()
    assert quote["accuracy"]["cell_noise_scale"] == pytest.approx((1 / 0.7) ** 0.5, rel=1e-2)
    assert "Gaussian noise of standard deviation" in quote["accuracy"]["explanation"]
    reply = staff("ana", "POST", "/v1/queries", json=in_rho("0.5", query=query))
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert (body["charge"], body["steps"]) == (quote["charge"], quote["steps"])
    assert [one["rho"] for one in body["steps"]] == ["0.15", "0.35"]
    assert body["answer"]["question"].startswith("How far apart are the values of town")
    assert len(body["answer"]["distances"]["town"]["matrix"]) > 1


def test_a_top_k_of_counts_or_degrees_is_a_gaussian_vector(people: Service) -> None:
    allowed = PROMISE | {"gaussian": True}
    name = people.dataset("olga", cap=allowed)
    assert grant(people, name, **allowed).status_code == 200
    top: dict[str, Any] = {"kind": "top_k", "k": 2, "utilities": [{"name": "degree"}]}

    def send(rho: str = "0.5", path: str = "queries", **fields: Any) -> Any:
        query = {"dataset": name, "rho": rho, "query": top | fields}
        return people("ana", "POST", f"/v1/{path}", json=query)

    quote = send(path="quotes").json()
    reply = send()
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert body["charge"]["epsilon"] is None
    assert body["charge"]["rho"] == "0.5"
    assert body["steps"] == quote["steps"]
    answer = body["answer"]
    assert answer["resolved"] == {
        "sensitivity": "global",
        "selector": "laplace",
        "noise": "discrete_gaussian",
    }
    assert answer["ordered"]
    # The Gaussian noise has σ² = Q/(2ρ), where Q = 2 because an edge changes the degrees of two
    # nodes by 1.
    error = quote["accuracy"]["value_error"]
    assert 2 <= error <= 4 * 2**0.5
    numbers = [answer["values"][one] for one in ("low", "value", "high")]
    for low, value, high in zip(*numbers, strict=True):
        assert (value - low, high - value) == (error, error)
    for fields in (
        {"selector": "exponential"},
        {"draws": "peeled"},
        {"utilities": [{"name": "egocentric_betweenness"}]},
    ):
        assert send(**fields).json()["type"] == "/problems/unsupported-query"
