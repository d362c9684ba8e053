"""Run the demonstration against a service, then check that a restart changed nothing.

``play.py URL FOLDER`` before the restart, ``play.py URL FOLDER --again`` after it. FOLDER has the
service's data in ``volumes/data``; what is to be compared is kept beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import httpx

from app.demo.session import session, top_k
from app.demo.transcript import Transcript

SEEN = ("/v1/budgets", "/v1/ledger", "/v1/queries")


def get(url: str, key: str, path: str) -> Any:
    reply = httpx.get(url + path, headers={"Authorization": f"Bearer {key}"}, timeout=60)
    reply.raise_for_status()
    return reply.json()


def play(url: str, folder: Path) -> None:
    """Run the demonstration and store what its users see at its end."""
    admin = (folder / "volumes/data/bootstrap-admin.key").read_text("utf-8").strip()
    talk = Transcript(url, folder, admin)
    session(talk, folder)
    analyst, owner = talk.keys["ANALYST"], talk.keys["OWNER"]
    state = {path: get(url, analyst, path) for path in SEEN}
    answer = ask(url, analyst).json()
    before = {"analyst": analyst, "owner": owner, "state": state, "answer": answer}
    (folder / "kept.json").write_text(json.dumps(before), "utf-8")


def ask(url: str, key: str) -> httpx.Response:
    """The paid question of the demonstration under its own key: a replay."""
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "demo-1"}
    query = top_k("les_miserables", k=5, epsilon="6")
    reply = httpx.post(url + "/v1/queries", json=query, headers=headers, timeout=60)
    if reply.headers.get("Idempotency-Replayed") != "true":
        raise SystemExit(f"not a replay: {reply.status_code} {reply.text}")
    return reply


def compare(url: str, folder: Path) -> None:
    """Raises SystemExit unless budgets, ledger, history, answer and chain are unchanged."""
    before = json.loads((folder / "kept.json").read_text("utf-8"))
    state = {path: get(url, before["analyst"], path) for path in SEEN}
    if state != before["state"] or not state["/v1/ledger"]["items"]:
        raise SystemExit(f"was: {before['state']}\nis: {state}")
    if ask(url, before["analyst"]).json() != before["answer"]:
        raise SystemExit("another answer under the same key")
    chain = get(url, before["owner"], "/v1/ledger/verification")
    if not chain["valid"]:
        raise SystemExit(f"not valid: {chain}")
    print(f"{chain['entries']} entries, valid, as before the restart")


if __name__ == "__main__":
    address, work = sys.argv[1], Path(sys.argv[2])
    (compare if "--again" in sys.argv[3:] else play)(address, work)
