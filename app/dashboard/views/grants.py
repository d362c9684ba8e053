"""The pages of grants: the caps of all datasets, and for one dataset the allowances of analysts."""

from dataclasses import dataclass

from starlette.responses import Response

from app.contract.budgets import AccountBalance, GrantedAccount
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.burn_down import burn_down_chart
from app.dashboard.forms import Form, SentForm, sent_allowance, sent_composition
from app.dashboard.pages import pages
from app.dashboard.search import search_page
from app.dashboard.views.budgets import State, state_of
from app.dashboard.visit import CurrentVisit, Visit
from app.http.access import allow
from app.usecases.accounts import budgets, purchases, spending
from app.usecases.accounts.arms import other_arm, share_left
from app.usecases.accounts.budgets import Granted

FIELDS = (
    *("analyst", "epsilon", "delta", "composition_delta", "gaussian", "allow_large_delta"),
    *("until", "endless"),
)


@dataclass(frozen=True)
class Row:
    """An account, its summary, and what is left of it in percent."""

    account: AccountBalance
    state: State
    share: int


@pages.get("/ui/grants", dependencies=[allow("owner", "auditor")])
def grants_page(visit: CurrentVisit) -> Response:
    """The cap of every dataset that the caller owns or audits."""
    granted = search_page(
        visit,
        visit.run(budgets.caps),
        lambda one: one.name,
        {"nearly spent": _by_share, "name": lambda one: one.name},
    )
    return visit.render(
        "grants.html",
        listed=granted,
        rows=[(one, _row(one.cap)) for one in granted.items],
        analysts=visit.run(budgets.analysts, [one.name for one in granted.items]),
    )


@pages.get("/ui/grants/{dataset}", dependencies=[allow("owner", "auditor")])
def allowances_page(visit: CurrentVisit, dataset: str) -> Response:
    """The allowances of one dataset."""
    analyst = visit.request.query_params.get("analyst", "")
    return _page(visit, dataset, Form({"analyst": [analyst]}))


@pages.post("/ui/grants/{dataset}", dependencies=[allow("owner")])
def grant(visit: CurrentVisit, dataset: str, form: SentForm) -> Response:
    """Set an allowance, or only preview the answers that it would pay for."""
    offers: list[purchases.Purchase] = []
    alert: Alert | None = None
    done = ""
    try:
        analyst, wish = form.get("analyst"), sent_allowance(form)
        if form.get("do") == "preview":
            offers = visit.run(purchases.preview, dataset, wish.value().loss)
        else:
            account = visit.run(budgets.grant, dataset, analyst, wish)
            done = _done(account)
    except Exception as error:
        alert = alert_of(error)
    return _page(visit, dataset, form, offers, alert, done)


def _done(account: GrantedAccount) -> str:
    epsilon = account.allowance.as_dict()["epsilon"]
    done = f"{account.analyst} may now learn ε {epsilon} of {account.dataset}"
    if account.until is None:
        return f"{done}."
    end = f"{account.until:%Y-%m-%d %H:%M} UTC"
    return f"{done}, but it has ended {end}." if account.is_over else f"{done}, until {end}."


@pages.post("/ui/grants/{dataset}/cap", dependencies=[allow("owner")])
def promise_cap(visit: CurrentVisit, dataset: str, form: SentForm) -> Response:
    """Set the δ_c of the cap, and whether it allows Gaussian noise."""
    alert: Alert | None = None
    done = ""
    try:
        cap = visit.run(budgets.promise_cap, dataset, sent_composition(form))
        way = "by ε or by ρ" if cap.counts_rho else "by ε alone"
        done = f"Charges now fit the cap of {dataset} {way}."
    except Exception as error:
        alert = alert_of(error)
    return _page(visit, dataset, Form({}), alert=alert, done=done)


def _page(
    visit: Visit,
    dataset: str,
    form: Form,
    offers: list[purchases.Purchase] | None = None,
    alert: Alert | None = None,
    done: str = "",
) -> Response:
    one = visit.run(budgets.of_dataset, dataset)
    pace = visit.run(spending.of_cap, dataset)
    accounts = search_page(
        visit,
        one.items,
        lambda account: account.analyst,
        {"nearly spent": _by_share_of_analyst, "name": lambda account: account.analyst},
    )
    return visit.render_part(
        "allowances.html",
        name=dataset,
        budgets=one,
        cap=_row(one.cap),
        listed=accounts,
        rows=[_row(account) for account in accounts.items],
        pace=pace,
        other=other_arm(one.cap),
        chart=burn_down_chart(pace),
        may_grant=visit.run(budgets.may_grant, dataset),
        purchases=offers or [],
        alert=alert,
        done=done,
        sent={name: form.get(name) for name in FIELDS},
    )


def _row(account: AccountBalance) -> Row:
    return Row(account, state_of(account), share_left(account))


def _by_share(one: Granted) -> tuple[int, str]:
    return share_left(one.cap), one.name


def _by_share_of_analyst(account: GrantedAccount) -> tuple[int, str]:
    return share_left(account), account.analyst
