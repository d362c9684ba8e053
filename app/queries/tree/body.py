"""The body of the query kind ``tree``: private models of a class, by one of several algorithms."""

from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Tag

from app.queries.parts.query import CatalogueEntry
from app.queries.parts.sentences import listing
from app.queries.tree.common import TreeQuery
from app.queries.tree.evolutionary import EvolutionaryTree
from app.queries.tree.forest import Forest
from app.queries.tree.id3 import Id3Tree
from app.queries.tree.naive_bayes import NaiveBayes

ALGORITHMS: dict[str, type[TreeQuery]] = {
    "id3": Id3Tree,
    "evolutionary": EvolutionaryTree,
    "forest": Forest,
    "naive_bayes": NaiveBayes,
}


def _which(body: Any) -> Any:
    """Returns the algorithm that the body names, or ``id3`` if it names none."""
    if isinstance(body, dict):
        return body.get("algorithm", "id3")
    return getattr(body, "algorithm", None)


AnyTree = Annotated[
    Annotated[Id3Tree, Tag("id3")]
    | Annotated[EvolutionaryTree, Tag("evolutionary")]
    | Annotated[Forest, Tag("forest")]
    | Annotated[NaiveBayes, Tag("naive_bayes")],
    Discriminator(
        _which,
        custom_error_type="algorithm",
        custom_error_message=f"algorithm is {listing(ALGORITHMS, 'or')}",
    ),
]


class Tree(CatalogueEntry):
    """The catalogue entry of the kind. A query is an instance of a class in ``ALGORITHMS``."""

    name: ClassVar[str] = "tree"
    gaussian: ClassVar[bool] = True
    title: ClassVar[str] = "Private decision trees"
    description: ClassVar[str] = (
        "A model that predicts a class attribute: a decision tree, grown level by level with noisy "
        "counts and privately selected splits (id3) or selected out of evolving populations by "
        "private rates (evolutionary), several trees that vote (forest), or noisy counts of each "
        "value by class (naive_bayes)."
    )

    @classmethod
    def catalogue(cls) -> dict[str, Any]:
        """Returns the entry with the parameters of all algorithms; each lists its algorithms."""
        own = {algorithm: kind.catalogue() for algorithm, kind in ALGORITHMS.items()}
        parameters: dict[str, dict[str, Any]] = {}
        for algorithm, entry in own.items():
            for name, form in entry["parameters"].items():
                parameters.setdefault(name, {})[algorithm] = form
        del parameters["algorithm"]
        algorithms = {"enum": list(ALGORITHMS), "default": "id3", "type": "string"}
        combined = {name: _combined(forms) for name, forms in parameters.items()}
        required = set.intersection(*(set(entry["required"]) for entry in own.values()))
        return {
            "kind": cls.name,
            "title": cls.title,
            "description": cls.description,
            "parameters": {"algorithm": algorithms, **combined},
            "required": [name for name in own["id3"]["required"] if name in required],
            "rho": cls.gaussian,
            "algorithms": [
                {
                    "name": algorithm,
                    "title": kind.title,
                    "description": kind.description,
                    "required": own[algorithm]["required"],
                    "rho": kind.gaussian,
                    "source": kind.source,
                }
                for algorithm, kind in ALGORITHMS.items()
            ],
            "definitions": {k: v for one in own.values() for k, v in one["definitions"].items()},
        }


def _combined(forms: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema that the algorithms share, or else one schema for each of them."""
    first = next(iter(forms.values()))
    if all(form == first for form in forms.values()):
        return {**first, "algorithms": list(forms)}
    return {"algorithms": list(forms), "by_algorithm": forms}
