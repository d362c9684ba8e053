"""Examples of queries for the interactive documentation; tests validate every one of them."""

from __future__ import annotations

from typing import Any

from fastapi.openapi.models import Example

TOP_K: dict[str, Any] = {
    "dataset": "github",
    "epsilon": "0.5",
    "query": {
        "kind": "top_k",
        "k": 10,
        "utilities": [{"name": "egocentric_betweenness"}],
        "sensitivity": "shifted",
    },
}
SELECTION: dict[str, Any] = {
    "dataset": "github",
    "epsilon": "0.1",
    "query": {"kind": "selection", "utilities": [{"name": "degree"}]},
}
DISTANCE: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "1",
    "query": {
        "kind": "distance",
        "target": "occupation",
        "context": "max_relevance",
        "context_size": 3,
        "sensitivity": "local",
        "embedding": True,
    },
}
CLUSTERING: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "4",
    "query": {
        "kind": "clustering",
        "clusters": 5,
        "iterations": 5,
        "encoding": "learned_distance",
        "distance": {"context": "max_relevance"},
        "distance_share": 0.5,
    },
}
TREE: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "0.5",
    "query": {"kind": "tree", "algorithm": "id3", "max_depth": 4},
}
TREE_SEARCH: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "0.5",
    "query": {
        "kind": "tree",
        "algorithm": "evolutionary",
        "positive_class": ">50K",
        "weights": {"true_positive_rate": 3, "true_negative_rate": 2},
    },
}
QUERIES: dict[str, Example] = {
    "top_k": Example(summary="The ten most influential nodes of a graph", value=TOP_K),
    "selection": Example(summary="One node of high degree", value=SELECTION),
    "tree": Example(summary="A decision tree with noisy class counts", value=TREE),
    "tree search": Example(summary="A tree for one class, by its rates", value=TREE_SEARCH),
    "distance": Example(summary="How far apart occupations are", value=DISTANCE),
    "clustering": Example(summary="Five centres, by learned distances", value=CLUSTERING),
}
QUOTES: dict[str, Example] = {
    "top_k": Example(summary="The price of ten nodes", value=TOP_K),
    "target": Example(
        summary="The epsilon that keeps the selected node close to the best",
        value={
            "dataset": "github",
            "target": {"score_below_best": 50},
            "query": SELECTION["query"],
        },
    ),
}
ANSWERED: dict[str, Any] = {
    "id": "0192f0c1-7c1e-7d5a-9a55-0f5b6f3f7c11",
    "status": "answered",
    "dataset": "github",
    "dataset_version": 1,
    "query": SELECTION["query"],
    "charge": {"epsilon": "0.1", "delta": "0", "neighbouring": "edge"},
    "remaining": {"epsilon": "0.9", "delta": "0"},
    "steps": [
        {
            "what": "permute and flip",
            "epsilon": "0.1",
            "delta": "0",
            "times": 1,
            "composition": "sequential",
        }
    ],
    "answer": {"selected": 31890},
    "receipt": "5f0c5c4c6b1d4b7e8a9f0a1b2c3d4e5f60718293a4b5c6d7e8f9010203040506",
}
