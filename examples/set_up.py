"""An admin makes an owner and an analyst; the owner describes data, uploads them and grants.

The key in PRIVYPURSE_KEY is an admin's; a new service leaves one in data/bootstrap-admin.key. The
service has to be new, as the names must not be taken. What is printed sets the analyst's key for
the other examples: eval "$(python examples/set_up.py)"
"""

import csv
import os
import random
import sys
import tempfile
from pathlib import Path

from privypurse import AlreadyExists, PrivyPurse

URL = os.environ.get("PRIVYPURSE_URL", "http://127.0.0.1:8000")

FRIENDS = {
    "name": "friends",
    "kind": "graph",
    "neighbouring": "edge",
    "nodes": {"count": 1000},
    "max_degree": 200,
    "cap": {"epsilon": "50"},
}
PEOPLE = {
    "name": "people",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 10_000,
    "attributes": [
        {"name": "age", "kind": "numeric", "bounds": [0, 120], "bins": 6, "missing": "?"},
        {"name": "town", "kind": "categorical", "values": ["Aix", "Brest", "Caen", "Dijon"]},
        {"name": "diet", "kind": "categorical", "values": ["fish", "meat", "plants"]},
        {"name": "sport", "kind": "categorical", "values": ["none", "some", "much"]},
        {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
    ],
    "class_attribute": "ill",
    "cap": {"epsilon": "50"},
}


def friendships(file: Path) -> None:
    """Preferential attachment: a graph with a few nodes of high degree."""
    chance = random.Random(1)
    ends, edges = [0, 1], {(0, 1)}
    for node in range(2, 1000):
        for friend in {chance.choice(ends) for _ in range(3)}:
            edges.add((friend, node))
            ends += [friend, node]
    write(file, ["source", "target"], sorted(edges))


def people(file: Path) -> None:
    """Rows in which illness depends on age and sport, and diet on the town."""
    chance = random.Random(2)
    rows = []
    for _ in range(8000):
        age, town = chance.randrange(100), chance.choice(["Aix", "Brest", "Caen", "Dijon"])
        diet = "fish" if town in ("Brest", "Caen") and chance.random() < 0.7 else "meat"
        diet = "plants" if chance.random() < 0.2 else diet
        sport = chance.choice(["none", "some", "much"])
        ill = chance.random() < (0.1 + age / 150) * (1.2 if sport == "none" else 0.6)
        rows.append([age if age else "?", town, diet, sport, "yes" if ill else "no"])
    write(file, ["age", "town", "diet", "sport", "ill"], rows)


def write(file: Path, head: list, rows: list) -> None:
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([head, *rows])


admin = PrivyPurse(URL, os.environ["PRIVYPURSE_KEY"])
try:
    owner = PrivyPurse(URL, admin.create_user("olympe", "owner").key)
    analyst_key = admin.create_user("ada", "analyst").key
    for description in (FRIENDS, PEOPLE):
        owner.register(description)
except AlreadyExists:
    sys.exit(
        f"{URL} is not new: it has olympe, ada, friends or people already. Start another service, "
        "with a data folder of its own."
    )

with tempfile.TemporaryDirectory() as folder:
    for name, generate in (("friends", friendships), ("people", people)):
        file = Path(folder, f"{name}.csv")
        generate(file)
        dataset = owner.upload(name, file)  # This shows a progress bar on a terminal.
        account = owner.grant(name, "ada", epsilon="20")
        print(f"{name}: {dataset.status}, ada may learn {account.allowance}", file=sys.stderr)

exposure = owner.budgets_of("people")
print(f"people: at most {exposure.exposure_at_most} if all pool their answers", file=sys.stderr)
print(f"export PRIVYPURSE_KEY={analyst_key}")
