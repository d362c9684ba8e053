"""A dataset in the words of the OpenDP deployments registry and of NIST SP 800-226.

What only a person can know, such as the use that is intended, is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.contract.times import moment
from storage.catalogue.datasets import StoredDataset

#: For each neighbouring relation: the change that a privacy loss hides, in words, and the
#: name of the privacy unit.
UNITS = {
    "edge": ("one edge of the graph, there or not", "edge"),
    "add_remove": ("one record, there or not", "record"),
    "replace": ("what one record says", "record"),
    "prefix": ("where a public list is cut off", "cut-off"),
}
TRUST = (
    "The service and whoever runs it hold the records in the clear. Owners upload them; analysts "
    "and auditors see released values alone."
)
COMPOSITION = (
    "Every charge is written to a ledger before the records are read. Losses add up, in ε and δ "
    "or in ρ, and the cap of the dataset bounds the loss of all analysts together, who may choose "
    "each query by earlier answers."
)
MECHANISMS = (
    "Exact integer samplers on public grids; no floating-point number decides a guarantee. "
    "Answers leave at public deadlines, so the time of the work reveals nothing."
)


def unit_of(description: Mapping[str, Any]) -> dict[str, Any]:
    """The unit of privacy: the neighbouring relation, and how many records one person has."""
    relation = description["neighbouring"]
    hidden, _ = UNITS[relation]
    per_person = description.get("records_per_person", 1)
    if "person" in description:
        hidden = f"one whole person, with at most {per_person} records"
    elif per_person > 1:
        hidden = f"{hidden}, for up to {per_person} records of one person"
    return {"neighbouring": relation, "records_per_person": per_person, "hidden": hidden}


def registry_fields(
    stored: StoredDataset, loss: Mapping[str, Any], unit: Mapping[str, Any], kinds: Sequence[str]
) -> dict[str, Any]:
    """The fields of an entry of the OpenDP deployments registry, as its schema names them."""
    return {
        "url_slug": None,
        "status": "Draft",
        "tier": None,
        "deployment": {
            "basic": {
                "name": stored.name,
                "data_curators": [stored.owner],
                "description": stored.description.get("description"),
                "intended_use": None,
                "data_product_type": "Interactive API",
                "data_product_region": None,
                "publication_date": moment(stored.created_us).date().isoformat(),
                "data_product_sector": None,
            },
            "dp_variant": {
                "variant_name": _variant(loss),
                "data_domain": f"a {stored.description['kind']} within its public description",
                "unprotected_quantities": (
                    "The public description, and the number of each version."
                ),
            },
            "privacy_loss": {
                "privacy_unit": _unit_name(stored),
                "privacy_unit_details": unit["hidden"],
                "privacy_parameters": {
                    name: float(loss["at_most"][name]) for name in ("epsilon", "delta")
                },
                "privacy_parameters_details": (
                    "The most that all analysts together may learn by the allowances granted so "
                    "far; the cap is never exceeded. It never refills."
                ),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": TRUST,
                "actors": "owner, analysts, auditors, administrators",
                "release_type": "Many releases",
                "release_type_details": "One release per answered query.",
                "data_source_type": "Dynamic" if stored.version > 1 else "Static",
                "data_source_type_details": "A new version of the records keeps every account.",
                "access_type": "Interactive",
                "access_type_details": (
                    "Each analyst has an allowance. The cap bounds all of them together, so it "
                    "does not assume that analysts keep their answers apart."
                ),
            },
            "accounting": {
                "post_processing": "Intervals, consistency and suppression use released values.",
                "composition": COMPOSITION,
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": (
                    "The description is public and fixed before the records are read."
                ),
                "mechanisms": f"{MECHANISMS} Kinds of queries: {', '.join(kinds) or 'none yet'}.",
                "justification": None,
            },
            "administrative": {"registry_authors": None, "sources": None, "notes": None},
        },
    }


def nist_fields(
    stored: StoredDataset, loss: Mapping[str, Any], unit: Mapping[str, Any], kinds: Sequence[str]
) -> dict[str, Any]:
    """The components of the differential privacy pyramid of NIST SP 800-226, from its top down."""
    return {
        "privacy_parameters": {"spent": loss["spent"], "cap": loss["cap"]},
        "unit_of_privacy": unit["hidden"],
        "algorithms_and_correctness": MECHANISMS,
        "composition": COMPOSITION,
        "utility": (
            "Numbers with public noise have intervals; quotes state the accuracy before a charge. "
            f"Kinds of queries answered: {', '.join(kinds) or 'none'}."
        ),
        "bias": "Clamped values and suppressed groups are biased; the description says where.",
        "side_channels": "Statuses, texts and release instants depend on public facts alone.",
        "security_and_access_control": (
            "Roles of owner, analyst, auditor and administrator; keys or an identity provider; a "
            "chained ledger and journal that verification recomputes."
        ),
        "trust_model": TRUST,
        "data_collection_exposure": None,
        "limits_of_the_description": {
            name: stored.description[name]
            for name in ("max_rows", "min_rows", "max_degree", "minimum_count")
            if name in stored.description
        },
    }


def _unit_name(stored: StoredDataset) -> str:
    if "person" in stored.description:
        return "person"
    return UNITS[stored.description["neighbouring"]][1]


def _variant(loss: Mapping[str, Any]) -> str:
    """The variant of differential privacy; δ includes the δ_c of accounts that count in ρ."""
    return "Pure DP" if loss["at_most"]["delta"] == "0" else "Approximate DP"
