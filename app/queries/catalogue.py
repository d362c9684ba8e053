"""The catalogue of the parts that a query can name, such as utilities, with their public facts."""

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from accounting.privacy_loss import format_units
from app.queries import QUERY_KINDS
from app.queries.parts.candidates import CANDIDATES
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import OBJECTIVES
from mechanisms.selection import JOINT_SELECTORS, SELECTORS
from mechanisms.selection.automatic import RULES, Rule
from mechanisms.selection.split import SPLITS, Split
from mechanisms.statistics import MECHANISMS, STATISTICS
from mechanisms.statistics.validity import VALID
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Utility

#: The names that the catalogue marks as advanced: they serve comparisons between mechanisms, or
#: ``auto`` is the better choice.
ADVANCED = frozenset({Sensitivity.FLATTENED.value, SELECTORS["exponential"].name})


def vocabulary() -> dict[str, list[dict[str, Any]]]:
    """Returns the query kinds and the candidates, utilities, selectors and statistics they use."""
    return {
        "queries": [
            {**kind.body.catalogue(), "advanced": list(kind.form.advanced)}
            for kind in QUERY_KINDS.values()
        ],
        "candidates": [candidate(kind, *facts) for kind, facts in CANDIDATES.items()],
        "utilities": [utility_facts(utility) for utility in UTILITIES.values()],
        "objectives": [{"name": name, **asdict(kind.facts)} for name, kind in OBJECTIVES.items()],
        "automatic": [automatic(rule) for rule in RULES],
        "stages": [stage(ranking, split) for ranking, splits in SPLITS.items() for split in splits],
        "sensitivities": [
            {
                "name": sensitivity.value,
                "description": sensitivity.description,
                "advanced": sensitivity.value in ADVANCED,
            }
            for sensitivity in Sensitivity
        ],
        "selectors": [
            {
                **facts_of(selector, "name", "title", "description", "noisy_max", "source"),
                "advanced": selector.name in ADVANCED,
            }
            for selector in (*SELECTORS.values(), *JOINT_SELECTORS.values())
        ],
        "statistics": [statistic(name) for name in STATISTICS],
    }


def automatic(rule: Rule) -> dict[str, Any]:
    """Describes a rule of ``auto``: the sensitivity of a ranking from some ε per candidate on."""
    return {
        "ranking": rule.ranking,
        "k": rule.k,
        "from_epsilon_each": format_units(rule.from_nano_each, 9),
        "sensitivity": rule.sensitivity.value,
        "reason": rule.reason,
    }


def stage(ranking: str, split: Split) -> dict[str, Any]:
    """Describes the default of ``stages`` from some ε on, in all and per candidate.

    ``beyond``: the part of k that a shortlist holds beyond k, at least one candidate; null where
    all candidates are scored. Below the first ε one stage takes what ``auto`` takes.
    """
    return {
        "ranking": ranking,
        "k": "2+",
        "from_epsilon": format_units(split.from_nano, 9),
        "from_epsilon_each": format_units(split.from_nano_each, 9),
        "beyond": None if split.beyond is None else str(split.beyond),
        "reason": split.reason,
    }


def facts_of(part: Any, *names: str) -> dict[str, Any]:
    """Returns the attributes of ``part`` with these names, as a dictionary."""
    return {name: getattr(part, name) for name in names}


def candidate(kind: str, body: type[BaseModel], description: str) -> dict[str, Any]:
    """Describes a kind of candidates: its form in a request and the utilities that compare it."""
    schema = body.model_json_schema()
    return {
        "kind": kind,
        "description": description,
        "parameters": schema["properties"],
        "required": schema.get("required", []),
        "utilities": [name for name, utility in UTILITIES.items() if utility.candidates == kind],
    }


def utility_facts(utility: Utility) -> dict[str, Any]:
    """Describes a utility, with its sensitivity under every neighbouring relation it supports."""
    facts = utility.sensitivity_facts
    return {
        **facts_of(utility, "name", "title", "description", "candidates"),
        "neighbouring": sorted(relation.value for relation in utility.relations),
        "sensitivity": {relation.value: asdict(facts[relation]) for relation in sorted(facts)},
        "joint_influence": {
            relation.value: {mode.value: asdict(facts) for mode, facts in by_mode.items()}
            for relation, by_mode in sorted(utility.joint_facts.items())
        },
        "shift": utility.direction,
        "source": utility.source,
    }


def statistic(name: str) -> dict[str, Any]:
    """Describes a statistic and the mechanisms that queries may use to release it."""
    mechanisms = [
        {
            **facts_of(MECHANISMS[row.mechanism], "name", "title", "description", "source"),
            "neighbouring": sorted(relation.value for relation in row.relations),
            "delta": "above 0" if row.delta else "0",
            "recommended": row.recommended,
        }
        for row in VALID
        if row.statistic == name
    ]
    facts = facts_of(STATISTICS[name], "name", "title", "description", "source")
    return {**facts, "mechanisms": mechanisms}
