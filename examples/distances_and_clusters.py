"""How far apart categorical values are, and clusters of records by such distances."""

import os

from privypurse import PrivyPurse

purse = PrivyPurse(
    os.environ.get("PRIVYPURSE_URL", "http://127.0.0.1:8000"), os.environ["PRIVYPURSE_KEY"]
)

answer = purse.distance("people", "town", epsilon="3", context_size=1, embedding=True)
town = answer["town"]
print("told apart by", town.context)
for value, row in zip(town.values, town.matrix, strict=True):
    print(f"{value:6}", " ".join(f"{distance:.2f}" for distance in row))
print("Brest to Caen:", round(town.between("Brest", "Caen"), 2))

# The matrix can be passed to scikit-learn with metric="precomputed".
try:
    from sklearn.cluster import AgglomerativeClustering
except ImportError:
    print("with scikit-learn installed the towns would be grouped here")
else:
    grouping = AgglomerativeClustering(2, metric="precomputed", linkage="average")
    groups = grouping.fit_predict(town.matrix).tolist()
    print("groups of towns:", dict(zip(town.values, groups, strict=True)))

# Clusters the private records, and assigns records of your own to the clusters.
clusters = purse.clustering("people", 3, epsilon="4", iterations=3, distance={"context_size": 1})
for index, typical in enumerate(clusters.typical()):
    print(f"cluster {index}: like {typical}")
rows = [
    {"age": 30, "town": "Brest", "diet": "fish", "sport": "some"},
    {"age": 70, "town": "Dijon", "diet": "meat", "sport": "none"},
]
print("assigned:", clusters.assign(rows))
