"""The public catalogue: the queries that this service answers, and the limits of the service."""

from typing import Any

from accounting.privacy_loss import format_units
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.catalogue import Catalogue
from app.queries.catalogue import vocabulary
from app.usecases.services import Services


def catalogue(services: Services) -> Catalogue:
    """All query kinds with parameters, defaults, neighbouring relations and sources; limits."""
    return Catalogue(
        **vocabulary(),
        amounts={
            "epsilon": {
                "least": format_units(MIN_QUERY_EPSILON_NANO, 9),
                "most": format_units(MAX_QUERY_EPSILON_NANO, 9),
                "decimal_places": 9,
            },
            "delta": {"least": "0", "below": "1", "decimal_places": 18},
        },
        limits=limits(services),
    )


def limits(services: Services) -> dict[str, Any]:
    """The published limits of this service."""
    settings = services.settings
    return {
        "preparation_limit": settings.preparation_limit,
        "memory_limit": settings.memory_limit,
        "upload_bytes": settings.upload_limit,
        "decompressed_bytes": settings.decompressed_limit,
        "release_interval_seconds": settings.release_interval,
    }
