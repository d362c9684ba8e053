"""Accounts of ε alone lose nothing by the columns of ρ, beside a tree before.

A paid query is that of the bench ``http``, and a pair that of ``ledger_pairs``. ``--before DIR``
names another checkout, such as one of a258b235, the commit before schema 0009. Both trees take
turns in each round, each in processes of its own.
"""

from contextlib import ExitStack
from functools import partial

from app.demo.service import ROOT
from benchmarks.bench import BEFORE, Bar, Bench, Setting
from benchmarks.ledger.databases import KINDS, databases, folder
from benchmarks.ledger.driver import Driver
from benchmarks.ledger.pairs import CLIENTS
from benchmarks.result import Result
from benchmarks.rounds import Rounds, Way
from benchmarks.service.http import SETTINGS, Pressure, requests
from benchmarks.service.processes import SERVE
from benchmarks.service.session import Session

#: This checkout must reach at least this share of the rate of the one that ``--before`` names.
LEAST_SHARE = 0.97


def run(result: Result, setting: Setting, kind: str) -> None:
    seconds, rounds = (0.4, 2) if setting.quick else (3.0, 11)
    trees = {"": ROOT} | ({", before": setting.before} if setting.before else {})
    ways: dict[str, Way] = {}
    with ExitStack() as stack:
        within = stack.enter_context(folder())
        new_database = stack.enter_context(databases(kind, within))
        for number, (name, root) in enumerate(trees.items()):
            own = within / str(number)
            own.mkdir()
            url = new_database(f"tree{number}")
            driver = stack.enter_context(Driver.started(url, own, root))
            ways[f"pairs{name}"] = partial(driver.rate, "hot", CLIENTS, seconds)
            if kind == "sqlite":
                session = stack.enter_context(Session.opened(root, SERVE, **SETTINGS))
                make = requests(session)["query"]
                ways[f"paid query{name}"] = Pressure(session.service, make, seconds, 201)
        rates = Rounds.of("per second", ways, rounds).report(result, "rates")
    for what in [name for name in ways if f"{name}, before" in ways]:
        result.measure(f"{what} / before", rates.ratio(what, f"{what}, before"), "×")


BENCHES = tuple(
    Bench(
        f"pure_accounts.{kind}",
        f"Do accounts of ε alone pay for the columns of ρ on {kind}?",
        partial(run, kind=kind),
        150.0,
        (BEFORE,),
        (Bar("* / before", least=LEAST_SHARE, before=True),),
    )
    for kind in KINDS
)
