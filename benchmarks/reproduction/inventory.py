"""Every table and figure of the four papers: what recomputes it, or why it cannot be had.

They are named by what they show; printed numbers of figures are given where they are certain.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.data.tables import PLANTED, SYNTHETIC
from benchmarks.reproduction.experiments.clusters import CLUSTER_TABLES
from benchmarks.reproduction.experiments.context_effects import TABLES as EFFECT_TABLES
from benchmarks.reproduction.experiments.contexts import NAMES
from benchmarks.reproduction.experiments.distances import CONTEXT_TABLES
from benchmarks.reproduction.papers import DAMPENING, DISTANCES, MULTI, NOISE
from benchmarks.selections.cases import BOUNDS
from benchmarks.trees.accuracy import TABLES


@dataclass(frozen=True)
class Shown:
    """A table or figure of a paper, and the experiments that recompute it or why none can."""

    paper: str
    what: str
    experiments: tuple[str, ...] = ()
    reason: str = ""


def _of(kind: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{kind}.{name}" for name in names)


_CENSUS = (
    "The extracts of the 2000 censuses of Brazil and Mexico (IPUMS-BR, IPUMS-ME) are not among the "
    "data: IPUMS International does not allow them to be passed on"
)
_BINS = "numeric attributes have five public bins of equal width; the paper cuts by the records"
_TABLES = f"{_CENSUS}; {_BINS}"
_RECORD = "what it prints is not on record here, so only the direction of its claim is judged"
_FINGERS = "printed curves have no table of values: shapes and orders are compared, not points"

INVENTORY: tuple[Shown, ...] = (
    Shown(DAMPENING, "worked examples on a graph of eight nodes (Examples 2.6 to 4.2)",
          ("worked_examples.selection",)),
    Shown(DAMPENING, "drawings that illustrate the dampening function", (),
          "they show a definition and hold no data"),
    Shown(DAMPENING, "table of the graphs", (),
          "a description of the data, whose counts the manifest of the data folder gives"),
    Shown(DAMPENING, "recall of the most influential nodes against ε, by graph and k",
          _of("influential_nodes", BOUNDS), _FINGERS),
    Shown(DAMPENING, "effect of k on the recall", _of("influential_nodes", BOUNDS)),
    Shown(DAMPENING, "comparison with PrivateSQL on samples of 50 nodes",
          _of("private_sql", BOUNDS), "the paper's samples are not published: others are drawn"),
    Shown(DAMPENING, "accuracy of decision trees against ε, depth 2 and 5",
          _of("decision_trees", TABLES),
          "the paper does not name the class attribute of nltcs and acs, nor the two attributes of "
          "adult that it leaves out"),
    Shown(DAMPENING, "significance of the differences between trees", ("rank_comparisons.trees",)),
    Shown(MULTI, "recall of weighted sums over nodes against ε", _of("weighted_nodes", BOUNDS),
          _FINGERS),
    Shown(MULTI, "measure C of Pareto selections of nodes against ε", _of("pareto_nodes", BOUNDS)),
    Shown(MULTI, "fitness of cost-sensitive trees against ε", _of("tree_search", TABLES)),
    Shown(MULTI, "measure C of Pareto searches of trees against ε", _of("tree_pareto", TABLES)),
    Shown(MULTI, "significance of the differences between searches",
          ("rank_comparisons.searches",)),
    Shown(MULTI, "what the evolutionary search spends (Algorithm 1)",
          ("worked_examples.multi_objective",)),
    Shown(MULTI, "local weighted sums and Pareto scores with δ as printed", (),
          "not simulated: the printed δ is below the local sensitivity, so its numbers are those "
          "of no private mechanism"),
    Shown(DISTANCES, "Example 2: probabilities of contexts", ("worked_examples.distances",),
          "its table of cities has not enough digits to recompute the rest"),
    Shown(DISTANCES, "sensitivities of Theorems 5 to 7", ("worked_examples.distances",)),
    Shown(DISTANCES, "F-score of contexts against ε", _of("distances", CONTEXT_TABLES), _TABLES),
    Shown(DISTANCES, "correlation of distance matrices against ε",
          _of("distances", CONTEXT_TABLES), _TABLES),
    Shown(DISTANCES, "the printed sensitivity against the exact one",
          _of("contexts", NAMES)),
    Shown(DISTANCES, "effects of k and of the share h; L1 per cell",
          _of("context_effects", EFFECT_TABLES)),
    Shown(DISTANCES, "correlation and L1 of object matrices",
          _of("object_distances", CLUSTER_TABLES), _CENSUS),
    Shown(DISTANCES, "Figures 4 and 5: Ward's clusters and nearest neighbours against ε",
          _of("clusters", CLUSTER_TABLES), _TABLES),
    Shown(DISTANCES, "private k-means (appendix A.6)", _of("clusters", CLUSTER_TABLES),
          "by a Lloyd iteration of our own: the library used in the paper is not private"),
    Shown(DISTANCES, "synthetic tables A to D",
          _of("clusters", (f"synthetic_{letter.lower()}" for letter in SYNTHETIC)),
          "remade after their description: the paper's are not published"),
    Shown(DISTANCES, "how often the context of the synthetic tables is found",
          _of("planted_contexts", PLANTED),
          f"tables and runs after the script that the authors published; {_RECORD}"),
    Shown(DISTANCES, "contexts of age and race in adult", ("adult_contexts",), _BINS),
    Shown(DISTANCES, "Tables 3 and 4, Figures 6 and 9", (),
          "which entry of this list has which of these numbers is not on record here; all that the "
          "authors' published scripts measure is recomputed under some entry"),
    Shown(DISTANCES, "Friedman and Nemenyi tests, Page's trend",
          ("rank_comparisons.distances",), "over the tables at hand"),
    Shown(DISTANCES, "execution times", ("learning_times",), "those of this machine"),
    Shown(NOISE, "Examples 5 and 14: prefix sums", ("salaries",),
          "the printed list of six values belongs to a prefix of another length"),
    Shown(NOISE, "the abstract, and both tables of the order of mechanisms",
          ("noise_orders",), _RECORD),
    Shown(NOISE, "Figure 2", (), "what it shows is not on record here"),
    Shown(NOISE, "Figure 3: noise of prefix sums of salaries", ("salaries",),
          "the paper does not say which pay column it takes: TotalPay here"),
    Shown(NOISE, "Figure 4: edges of subgraphs of Gowalla", ("gowalla_counts",),
          "the paper's samples are not published, and it has five users less: nodes of largest "
          "degree here"),
    Shown(NOISE, "Figures 6 to 8: two-triangles of subgraphs of Gowalla", ("gowalla_counts",),
          "as for Figure 4"),
    Shown(NOISE, "execution times", ("salaries", "gowalla_counts"), "those of this machine"),
    Shown(NOISE, "section 5.3: a worked example", ("worked_examples.noise",),
          "two of its four values are single random draws"),
)  # fmt: skip
