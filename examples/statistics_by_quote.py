"""Numbers about private data, each quoted first: what accuracy costs, and what is left."""

import os

from privypurse import PrivyPurse, statistic

purse = PrivyPurse(
    os.environ.get("PRIVYPURSE_URL", "http://127.0.0.1:8000"), os.environ["PRIVYPURSE_KEY"]
)

# What does a count cost that is off by at most ten? A quote finds the ε for this error.
question = statistic("count", where={"attribute": "sport", "in": ["none"]})
quote = purse.quote("people", question, target={"error": 10})
print("a count off by at most 10 costs", quote.charge)
if quote.affordable:
    answer = purse.ask("people", question, epsilon=quote.charge.epsilon)
    print(f"{answer.value} people do no sport (noise of scale {answer.noise_scale:.1f})")

mean = purse.statistic("people", "mean", attribute="age", epsilon="0.5")
median = purse.statistic("people", "median", attribute="age", epsilon="0.5")
print(f"mean age: {mean.value:.1f}, median: {median.value}")
print("triangles:", purse.statistic("friends", "triangles", epsilon="2").value)

for account in purse.budgets():
    print(f"{account.dataset}: {account.spent} spent of {account.allowance}")
for entry in list(purse.ledger("people"))[:3]:
    print(f"{entry.at:%H:%M:%S} {entry.kind} {entry.amount}")
