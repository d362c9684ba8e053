"""The steps of the demonstration, in the order in which users would perform them."""

import time
from pathlib import Path
from typing import Any

import networkx

from app.demo import graphs
from app.demo.transcript import Transcript, Unexpected


def session(talk: Transcript, folder: Path) -> None:
    """Perform all steps. Raises: Unexpected if a reply of the service is not as expected."""
    people(talk)
    small_graph(talk, folder)
    large_graph(talk, folder)
    talk.say("What the analyst has spent, and the ledger behind it")
    talk.send("ANALYST", "GET", "/v1/budgets", expect=(200,))
    talk.send("ANALYST", "GET", "/v1/ledger?limit=3", expect=(200,))


def people(talk: Transcript) -> None:
    """The admin creates an owner, who provides records, and an analyst, who sends queries."""
    talk.say("The admin makes an owner and an analyst; each key is shown once")
    for name, role in (("olympe", "owner"), ("ada", "analyst")):
        user = {"name": name, "roles": [role]}
        reply = talk.send("ADMIN", "POST", "/v1/users", user, expect=(201,))
        talk.keys[role.upper()] = reply["key"]


def small_graph(talk: Transcript, folder: Path) -> None:
    """Queries of a small real graph: an answer, its replay, and one that exceeds the budget."""
    # Nodes are the 77 characters of Hugo's "Les Misérables". An edge joins two who appear together
    # (Knuth 1993).
    graph = networkx.les_miserables_graph()
    talk.say("The owner registers a graph by what is public about it, then uploads its edges")
    register(talk, "les_miserables", {"ids": sorted(graph)}, max_degree=50)
    upload(talk, "les_miserables", graphs.write_csv(graph, folder / "les_miserables.csv"))
    talk.say("The owner grants the analyst an allowance of ε = 8")
    grant(talk, "les_miserables", "8")

    query = top_k("les_miserables", k=5, epsilon="6")
    talk.say("What would the five most influential characters cost? A quote is free")
    quote = talk.send("ANALYST", "POST", "/v1/quotes", query, expect=(200,))
    talk.say("The analyst pays for the answer")
    key = {"Idempotency-Key": "demo-1"}
    first = ask(talk, query, key)
    if first["charge"]["epsilon"] != quote["charge"]["epsilon"]:
        raise Unexpected("the quote and the query disagree on the charge")
    private, true = first["answer"]["selected"], graphs.true_top(graph, 5)
    print(f"\nprivate answer: {', '.join(private)}")
    print(f"   true answer: {', '.join(true)} (known to the owner alone)")
    talk.say("The same key and body: the stored answer again, and no charge")
    again = talk.send("ANALYST", "POST", "/v1/queries", query, expect=(201,), headers=key)
    if again != first:
        raise Unexpected("a replay differs from its first answer")
    talk.say("As much again no longer fits: refused, and nothing is charged")
    refused = talk.send("ANALYST", "POST", "/v1/queries", query, expect=(403,))
    if not refused["type"].endswith("budget-exhausted"):
        raise Unexpected(f"refused as {refused['type']}")


def large_graph(talk: Transcript, folder: Path) -> None:
    """A query of a generated graph of 20,000 numbered nodes, which is uploaded compressed."""
    talk.say("A larger graph: 20,000 nodes, generated")
    graph = graphs.generated()
    register(talk, "generated", {"count": graphs.GENERATED_NODES}, max_degree=2000)
    upload(talk, "generated", graphs.write_csv(graph, folder / "generated.csv.gz"))
    grant(talk, "generated", "1")
    query = top_k("generated", k=10, epsilon="1")
    started = time.monotonic()
    answer = ask(talk, query)
    seconds = time.monotonic() - started
    best = sorted(graph, key=lambda node: -graph.degree[node])[:10]
    hits = len(set(best) & set(answer["answer"]["selected"]))
    print(f"\n{hits} of the 10 are among the 10 nodes with most neighbours; {seconds:.2f} s")


def top_k(dataset: str, *, k: int, epsilon: str) -> dict[str, Any]:
    """The body of a query for k nodes of large egocentric betweenness (shifted local dampening)."""
    utilities = [{"name": "egocentric_betweenness"}]
    kind = {"kind": "top_k", "k": k, "utilities": utilities, "sensitivity": "shifted"}
    return {"dataset": dataset, "epsilon": epsilon, "query": kind}


def ask(talk: Transcript, query: dict[str, Any], key: dict[str, str] | None = None) -> Any:
    """Send a query and wait for its answer, which may take long while kernels are compiled."""
    reply = talk.send("ANALYST", "POST", "/v1/queries", query, expect=(201, 202), headers=key)
    while reply["status"] == "running":
        path, patient = f"/v1/queries/{reply['id']}", {"Prefer": "wait=30"}
        reply = talk.send("ANALYST", "GET", path, expect=(200,), headers=patient)
    if reply["status"] != "answered":
        raise Unexpected(f"the query ended as {reply['status']}")
    return reply


def register(talk: Transcript, name: str, nodes: dict[str, Any], *, max_degree: int) -> None:
    """Register a graph: nodes, a bound on degrees, and a cap for all analysts together."""
    description = {
        "name": name,
        "kind": "graph",
        "neighbouring": "edge",
        "max_degree": max_degree,
        "cap": {"epsilon": "20", "delta": "0"},
        "nodes": nodes,
    }
    talk.send("OWNER", "POST", "/v1/datasets", description, expect=(201,))


def upload(talk: Transcript, name: str, file: Path) -> None:
    """Send the private edges and wait until they are prepared."""
    headers = {"Content-Type": "text/csv"}
    if file.suffix == ".gz":
        headers["Content-Encoding"] = "gzip"
    path = f"/v1/datasets/{name}"
    records = f"{path}/records"
    reply = talk.send("OWNER", "PUT", records, file, expect=(201, 202), headers=headers)
    # The records have ten minutes to become ready, because kernels may have to be compiled first.
    deadline = time.monotonic() + 600
    while reply["status"] != "ready":
        if reply["status"] == "refused" or time.monotonic() > deadline:
            raise Unexpected(f"the records of {name} did not become ready")
        time.sleep(0.5)
        reply = talk.send("OWNER", "GET", path, expect=(200,))


def grant(talk: Transcript, name: str, epsilon: str) -> None:
    """Set the analyst's allowance for a dataset."""
    amount = {"epsilon": epsilon, "delta": "0"}
    talk.send("OWNER", "PUT", f"/v1/datasets/{name}/budgets/ada", amount, expect=(200,))
