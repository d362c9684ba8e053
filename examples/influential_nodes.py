"""Who is most influential in a private graph, and what that costs."""

import os

from privypurse import BudgetExhausted, PrivyPurse, top_k

purse = PrivyPurse(
    os.environ.get("PRIVYPURSE_URL", "http://127.0.0.1:8000"), os.environ["PRIVYPURSE_KEY"]
)

# A query is a plain value that can be quoted first. A quote costs no budget.
question = top_k(5, "egocentric_betweenness", sensitivity="shifted")
quote = purse.quote("friends", question, epsilon="2")
print("would cost", quote.charge, "and fits" if quote.affordable else "and does not fit")

answer = purse.ask("friends", question, epsilon="2")
print("most influential:", answer.selected)
print("charged", answer.charge, "- receipt", answer.receipt)
print("left:", answer.remaining)

# This selects three nodes by degree in one line. With a key of your own, a second run returns the
# same answer at no further cost.
print("most friends:", purse.top_k("friends", 3, "degree", epsilon="1", key="friends-1").selected)

try:
    purse.ask("friends", question, epsilon="1000")
except BudgetExhausted as refused:
    print("1000 is too much; at most", refused.largest_affordable)
