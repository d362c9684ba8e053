"""What may be asked of this service, and the limits it works within; all of it public."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from accounting.privacy_loss import format_units
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.models import Reply
from app.http.access import any_key
from app.http.dependencies import ServicesDep
from app.http.routing import router
from app.queries import QUERY_KINDS
from app.queries.parts.candidates import CANDIDATES
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import OBJECTIVES
from mechanisms.selection import NOT_OFFERED, SELECTORS
from mechanisms.statistics import MECHANISMS, STATISTICS
from mechanisms.statistics.validity import VALID
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Utility

api = router(prefix="/v1", tags=["catalogue"])


class Catalogue(Reply):
    """Query kinds with their parameters, what they are made of, and the service's limits."""

    queries: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    utilities: list[dict[str, Any]]
    objectives: list[dict[str, Any]]
    sensitivities: list[dict[str, str]]
    selectors: list[dict[str, str]]
    selectors_not_offered: list[dict[str, str]]
    statistics: list[dict[str, Any]]
    amounts: dict[str, Any]
    limits: dict[str, Any]


@api.get("/catalogue", dependencies=[any_key])
def catalogue(services: ServicesDep) -> Catalogue:
    """Everything an analyst may ask for: parameters, defaults, relations, sources."""
    settings = services.settings
    return Catalogue(
        queries=[kind.body.catalogue() for kind in QUERY_KINDS.values()],
        candidates=[candidate(kind, *facts) for kind, facts in CANDIDATES.items()],
        utilities=[described(utility) for utility in UTILITIES.values()],
        objectives=[{"name": name, **asdict(kind.facts)} for name, kind in OBJECTIVES.items()],
        sensitivities=[
            {"name": sensitivity.value, "description": sensitivity.description}
            for sensitivity in Sensitivity
        ],
        selectors=[
            {
                "name": selector.name,
                "title": selector.title,
                "description": selector.description,
                "noisy_max": selector.noisy_max,
                "source": selector.source,
            }
            for selector in SELECTORS.values()
        ],
        selectors_not_offered=[
            {"noise": noise, "description": reason} for noise, reason in NOT_OFFERED.items()
        ],
        statistics=[statistic(name) for name in STATISTICS],
        amounts={
            "epsilon": {
                "least": format_units(MIN_QUERY_EPSILON_NANO, 9),
                "most": format_units(MAX_QUERY_EPSILON_NANO, 9),
                "decimal_places": 9,
            },
            "delta": {"least": "0", "below": "1", "decimal_places": 18},
        },
        limits={
            "preparation_limit": settings.preparation_limit,
            "memory_limit": settings.memory_limit,
            "upload_bytes": settings.upload_limit,
            "decompressed_bytes": settings.decompressed_limit,
            "release_interval_seconds": settings.release_interval,
        },
    )


def candidate(kind: str, body: type[BaseModel], description: str) -> dict[str, Any]:
    """A kind of candidates: how requests write them, and which utilities compare them."""
    schema = body.model_json_schema()
    return {
        "kind": kind,
        "description": description,
        "parameters": schema["properties"],
        "required": schema.get("required", []),
        "utilities": [name for name, utility in UTILITIES.items() if utility.candidates == kind],
    }


def described(utility: Utility) -> dict[str, Any]:
    facts = utility.sensitivity_facts
    return {
        "name": utility.name,
        "title": utility.title,
        "description": utility.description,
        "candidates": utility.candidates,
        "neighbouring": sorted(relation.value for relation in utility.relations),
        "sensitivity": {relation.value: asdict(facts[relation]) for relation in sorted(facts)},
        "shift": utility.direction,
        "source": utility.source,
    }


def statistic(name: str) -> dict[str, Any]:
    """One statistic with the mechanisms that may release it: the table that queries obey."""
    kind = STATISTICS[name]
    mechanisms = [
        {
            "name": row.mechanism,
            "title": MECHANISMS[row.mechanism].title,
            "description": MECHANISMS[row.mechanism].description,
            "source": MECHANISMS[row.mechanism].source,
            "neighbouring": sorted(relation.value for relation in row.relations),
            "delta": "above 0" if row.delta else "0",
            "recommended": row.recommended,
        }
        for row in VALID
        if row.statistic == name
    ]
    return {
        "name": name,
        "title": kind.title,
        "description": kind.description,
        "source": kind.source,
        "mechanisms": mechanisms,
    }
