"""What the technical words of forms mean, in plain sentences, beside the fields that bear them.

A field is looked up by its label, so that every form that has the field explains it alike.
"""

from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """One explained word: the labels of its fields, and the part of the handbook that has more."""

    question: str
    answer: str
    page: str
    labels: tuple[str, ...]


GLOSSARY = (
    Term(
        "What is ε?",
        "ε (epsilon) says how much an answer can change what anybody believes about one record. "
        "Suppose that somebody gives a guess about a record a chance of 50 in 100. After answers "
        "with ε 0.1 together, they have reason to give it at most 53 in 100, with ε 1 at most "
        "74, and with ε 3 at most 96. From ε 10 on, hardly any protection is left. Charges add "
        "up, and nothing takes them back. A smaller ε means more noise.",
        "privacy#the-promise",
        ("ε", "ε in total"),
    ),
    Term(
        "What is δ?",
        "δ (delta) is the chance with which the promise of ε may fail altogether. Choose it far "
        "below 1 divided by the number of records, such as 0.000001. Most kinds of answers need "
        "no δ: with 0 the promise of ε never fails.",
        "privacy#the-promise",
        ("δ", "δ in total", "Delta"),
    ),
    Term(
        "What is δ for many queries?",
        "Many small answers reveal less together than the sum of their ε, except with a small "
        "chance. This field is that chance. With 0 the ε of all answers simply add up. With a "
        "small number above 0, the same promise pays for many more small queries.",
        "privacy#accounts-that-count-in-ρ",
        ("δ for many queries",),
    ),
    Term(
        "What is Gaussian noise?",
        "Gaussian noise follows the bell curve. It is smaller where one record moves many numbers. "
        "Its loss is counted in ρ, and it has no promise in ε that never fails.",
        "privacy#accounts-that-count-in-ρ",
        ("Allow Gaussian noise",),
    ),
    Term(
        "What is ρ?",
        "ρ (rho) is a second measure of privacy loss, for many answers or for Gaussian noise. "
        "Charges in ρ add up as charges in ε do. An answer with ε alone has a ρ of at most ε² / "
        "2.",
        "privacy#accounts-that-count-in-ρ",
        ("or ρ", "ρ in all"),
    ),
    Term(
        "What is in a public description?",
        "The description says what everybody may know before the records are read: attributes, "
        "values and bounds. Decide it without looking at the records. `neighbouring` says what "
        "privacy hides, and `cap` how much all analysts may learn together.",
        "datasets",
        ("Public description, as JSON",),
    ),
    Term(
        "What does privacy hide?",
        "Privacy hides one change of the records. An analyst can hardly tell whether a row is "
        "there, or what one row says, but may learn what is true of many rows.",
        "privacy#neighbouring-relations",
        ("One change is",),
    ),
    Term(
        "Why a largest number of rows?",
        "Prices and noise follow from public facts alone, so the number of rows that may come must "
        "be public. Take a round number that will never be reached. A file with more is refused.",
        "privacy#public-facts",
        ("At most so many rows", "At least so many rows", "Exactly so many rows"),
    ),
    Term(
        "Whose data is one row?",
        "If a person may have several rows, say how many: the promise then covers all of them. "
        "With a column of persons the service itself keeps no more rows of each person than that.",
        "privacy#persons",
        ("Records per person", "Column of persons"),
    ),
    Term(
        "Which values?",
        "The values are all that a cell may say, whether a record says it or not. They are public, "
        "so take them from the code book and not from the records. Open values stay private and "
        "serve in few places.",
        "datasets#attributes-of-a-table",
        ("Values, one per line",),
    ),
    Term(
        "What are bounds?",
        "Bounds are the smallest and the largest value that a cell may have. They are public. A "
        "wider range means more noise in sums and means; cells outside are refused or moved.",
        "privacy#public-facts",
        ("Lower bound", "Upper bound", "First day", "Last day"),
    ),
    Term(
        "What are bins?",
        "Bins are the groups into which tables and trees put numbers: a number of equal ones, or "
        "all edges from the lower to the upper bound.",
        "datasets#attributes-of-a-table",
        ("Bins",),
    ),
    Term(
        "What is a missing cell?",
        "An empty cell is refused unless the description says how a missing cell is written. It is "
        "then one more value of the attribute.",
        "datasets#attributes-of-a-table",
        ("Text of a missing cell",),
    ),
    Term(
        "What is a degree?",
        "The degree of a node is the number of its edges. Choose a round number that no node will "
        "exceed, without looking at the graph. A larger one means more noise.",
        "datasets",
        ("Largest degree",),
    ),
    Term(
        "What is a prefix?",
        "The records say how many values of the public list apply, from the first on. Only this "
        "number is private.",
        "statistics#a-prefix-dataset",
        ("Public values, one per line, smallest first",),
    ),
    Term(
        "What are candidates?",
        "Candidates are what a selection chooses from: nodes, attributes, values or models. They "
        "are public. The records decide only which of them is likely to be selected.",
        "mechanisms#candidates",
        ("Candidates", "Values of"),
    ),
    Term(
        "What is a utility?",
        "A utility is the number by which a candidate is good, such as the degree of a node. A "
        "weight says how much a utility counts in a weighted sum.",
        "mechanisms#utilities",
        ("Utilities", "Weights"),
    ),
    Term(
        "What is an objective?",
        "The objective says how several utilities become one score: one utility alone, their "
        "weighted sum, or how many candidates are better in all of them (Pareto).",
        "mechanisms#objectives",
        ("Objective",),
    ),
    Term(
        "What is sensitivity?",
        "Sensitivity is the most by which one record can change a score. Noise must hide that "
        "change. The choices bound it once for all candidates or for each on its own; `auto` "
        "takes the better one by a public rule.",
        "mechanisms#sensitivities",
        ("Sensitivity",),
    ),
    Term(
        "What is a selector?",
        "The selector draws candidates at random, better ones more likely. All keep the same "
        "promise at the same ε; they differ in how often they draw a good candidate.",
        "mechanisms#selectors",
        ("Selector", "Draws"),
    ),
    Term(
        "What is Pareto?",
        "A candidate is better in the sense of Pareto if no utility is worse and one is higher. "
        "More passes compare candidates more finely and take more time.",
        "mechanisms#pareto",
        ("Passes", "Rescore"),
    ),
    Term(
        "What are stages?",
        "Two stages first draw a shortlist with a part of ε, and then select from it with the "
        "rest. That helps where most candidates are bad.",
        "mechanisms#two-stages",
        ("Stages",),
    ),
    Term(
        "What is k?",
        "k is a number that you choose: how many candidates are selected, or how many edges a star "
        "has. More candidates share the same ε, so each is drawn less exactly.",
        "mechanisms",
        ("K",),
    ),
    Term(
        "What is a class attribute?",
        "The class attribute is the column that a model predicts from the others. The positive "
        "class is the one of its values that counts as a hit.",
        "trees",
        ("Class attribute", "Positive class"),
    ),
    Term(
        "What is an attribute?",
        "An attribute is a column of the table. Its values and bounds are public.",
        "datasets#attributes-of-a-table",
        ("Attribute", "Attributes", "Code book"),
    ),
    Term(
        "What are the learners?",
        "`id3` grows one tree from the root, and `evolutionary` improves a population of trees. A "
        "forest grows trees of random splits, and naive Bayes counts each attribute on its own.",
        "trees#which-learner",
        ("Algorithm",),
    ),
    Term(
        "How does a tree grow?",
        "A tree splits the records by one attribute after another. A deeper tree makes finer "
        "groups and has less ε for each level. The criterion says which split is good. Pruning "
        "removes branches that predict no better.",
        "trees#how-id3-spends-ε",
        ("Criterion", "Max depth", "Prune", "Splits", "Trees"),
    ),
    Term(
        "What is an evolutionary search?",
        "The search begins with a population of random trees. In every generation it selects good "
        "ones under a part of ε and combines them. More generations leave less ε for each.",
        "trees#how-the-search-spends-ε",
        ("Population", "Generations", "Selected", "Initial depth", "Outputs"),
    ),
    Term(
        "What is a learned distance?",
        "Two values are near if records with one look like records with the other. The attributes "
        "in which they are compared are the context of the target.",
        "distances#distances",
        (
            "Target",
            "Context",
            "Context share",
            "Context size",
            "Selection rule",
            "Threshold",
            "Distance share",
            "Embedding",
            "Encoding",
        ),
    ),
    Term(
        "How does clustering work?",
        "Clustering looks for centres that are near to many records. Each iteration moves the "
        "centres and takes a share of ε. Several starts try several sets of first centres.",
        "distances#clustering",
        ("Clusters", "Initial centres", "Iterations", "Starts"),
    ),
    Term(
        "What is a cell?",
        "A cell is one combination of the groups, such as women in sales. Every cell gets noise of "
        "its own, so many small cells are less exact than few large ones.",
        "tables#fields",
        ("Groups", "Rows", "Columns", "Measures"),
    ),
    Term(
        "What are consistent totals?",
        "A total is the sum of cells. A measured total has its own noise and its own share of ε. "
        "Consistent numbers are adjusted so that cells add up to the totals; that is free.",
        "tables#what-it-costs",
        ("Totals", "Consistent", "Non negative"),
    ),
    Term(
        "What is a mechanism?",
        "A mechanism is a way to add noise to one statistic. All keep the same promise at the same "
        "ε. The quote says how accurate each is.",
        "statistics#mechanisms",
        ("Mechanism", "Statistic"),
    ),
    Term(
        "What is a quantile?",
        "A quantile is the value below which a share of the records lies. The share 0.5 gives the "
        "median, and 0.25 the lowest quarter.",
        "statistics#statistics",
        ("Quantile",),
    ),
    Term(
        "What is a condition?",
        "A condition chooses the records that count. It costs nothing more, but fewer records "
        "stand against the same noise.",
        "statistics",
        ("Only records where",),
    ),
    Term(
        "What does an accuracy mean here?",
        "The noise is random. The quote names an error that the answer stays below with the stated "
        "chance. It follows from public facts alone, so to ask for it reads no records.",
        "statistics#what-a-quote-says",
        ("or reach an accuracy",),
    ),
)


def _by_label() -> dict[str, tuple[Term, ...]]:
    terms: dict[str, list[Term]] = defaultdict(list)
    for term in GLOSSARY:
        for label in term.labels:
            terms[label].append(term)
    return {label: tuple(explained) for label, explained in terms.items()}


_TERMS = _by_label()


def terms_of(*labels: str) -> list[Term]:
    """The terms that explain fields with these labels, each once, in the order of the labels."""
    return list(dict.fromkeys(term for label in labels for term in _TERMS.get(label, ())))
