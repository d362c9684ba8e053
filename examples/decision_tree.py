"""A private decision tree, and its predictions for your own records."""

import os

from privypurse import PrivyPurse

purse = PrivyPurse(
    os.environ.get("PRIVYPURSE_URL", "http://127.0.0.1:8000"), os.environ["PRIVYPURSE_KEY"]
)

answer = purse.tree("people", epsilon="2", max_depth=2, criterion="gini")
print(answer)

# Predictions cost no budget, because a released tree is public. Numbers are put into bins by the
# tree.
patients = [
    {"age": 17, "town": "Aix", "diet": "meat", "sport": "much"},
    {"age": 88, "town": "Caen", "diet": "fish", "sport": "none"},
    {"age": None, "town": "Dijon", "diet": "plants", "sport": "some"},
]
labels = answer.tree.predict(patients)
chances = answer.tree.predict_proba(patients)
for patient, label, chance in zip(patients, labels, chances, strict=True):
    print(f"{patient['age']}: {label}, ill with probability {chance['yes']:.2f}")

# An evolved tree tells one class from the others. It has no counts, so it predicts no
# probabilities.
evolved = purse.tree(
    "people", "evolutionary", epsilon="2", positive_class="yes", initial_depth=2, max_depth=2
)
print("evolved:", evolved.tree.predict(patients))

with open("tree.svg", "w", encoding="utf-8") as file:
    file.write(purse.drawing(answer.id, "svg"))
print("drawn in tree.svg")
