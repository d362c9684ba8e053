"""Recall of true betweenness from a small to a large ε: stages beside either stage alone.

Every query is computed by the body that serves it. ``stages`` names nothing: the public rule splits
ε. Its rivals are the scores that pay at a small ε and the scores that keep the order, each with the
whole ε.
"""

from collections.abc import Mapping
from functools import partial

from app.queries.top_k.body import TopK
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.result import Estimate, Result, mean
from benchmarks.selections.defaults import BETWEENNESS, NO_NOISE, Place, graph_place, recalls
from benchmarks.simulation import seed

GRAPHS = ("github", "enron", "dblp")
SIZES = (5, 10, 20)
EPSILONS = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 20.0, 30.0, 50.0, 100.0, NO_NOISE]
OURS = "stages"
ROUTES: Mapping[str, Mapping[str, object]] = {
    OURS: {"stages": {}},
    "shifted alone": {"sensitivity": "shifted"},
    "flattened alone": {"sensitivity": "flattened"},
}


def run(result: Result, setting: Setting, name: str) -> None:
    place = graph_place(setting.data, name)
    for k in setting.fewer(SIZES):
        compared(result, setting, place, name, k)


def compared(result: Result, setting: Setting, place: Place, name: str, k: int) -> None:
    runs, epsilons = setting.times(20), setting.fewer(EPSILONS)
    lines = {
        route: [_recall(place, body(k, fields), epsilon, runs, setting) for epsilon in epsilons]
        for route, fields in ROUTES.items()
    }
    title = f"{name}, top {k} by betweenness"
    result.plot(title, "recall", epsilons, lines)
    gaps = []
    for at in range(len(epsilons)):
        value, half = lines[OURS][at]
        better, beside = max(line[at] for route, line in lines.items() if route != OURS)
        gaps.append((value - better, half + beside))
    least, half = min(gaps)
    result.measure(f"{title}: stages − better alone, least", least, "", half)
    result.measure(f"{title}: recall of stages at ε = {epsilons[-1]:g}", lines[OURS][-1][0])


def _recall(place: Place, body: TopK, epsilon: float, runs: int, setting: Setting) -> Estimate:
    # Every route restarts the random draws at one seed. So two routes have equal recalls wherever
    # they use the same mechanism.
    seed(setting.seed)
    return mean(recalls(place, body, epsilon, runs))


def body(k: int, fields: Mapping[str, object]) -> TopK:
    named = {"kind": "top_k", "k": k, "utilities": ({"name": BETWEENNESS},)}
    return TopK.model_validate({**named, **fields})


BENCHES = tuple(
    Bench(f"stages.{name}",
          f"Do two stages on {name} find at every ε what the better of them finds alone?",
          partial(run, name=name), 90.0, tuple(ROUTES)[1:],
          (Bar("*: stages − better alone, least", least=-0.1),
           Bar("*: recall of stages at *", least=1.0)), edges_of(name))
    for name in GRAPHS
)  # fmt: skip
