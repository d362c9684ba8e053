"""A dataset in the words of the OpenDP deployments registry and of NIST SP 800-226.

What only a person can know, such as the use that is intended, is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.contract.times import moment
from storage.catalogue.datasets import StoredDataset

#: The neighbouring relation → the change that a privacy loss hides, and the field's name for it.
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
    """The fields of an entry of the OpenDP deployments registry, as its YAML files name them."""
    return {
        "status": "Draft",
        "registry_authors": None,
        "tier": None,
        "deployment": {
            "name": stored.name,
            "data_curator": stored.owner,
            "description": stored.description.get("description"),
            "intended_use": None,
            "data_product_type": ", ".join(kinds) or None,
            "publication_date": moment(stored.created_us).date().isoformat(),
            "data_product_region": None,
            "data_product_sector": None,
            "dp_flavor": _flavor(stored, loss, unit),
            "privacy_loss": {
                "privacy_unit": _unit_name(stored),
                "privacy_unit_description": unit["hidden"],
                "privacy_parameters": dict(loss["at_most"]),
                "privacy_parameters_description": (
                    "The most that all analysts together may learn by the allowances granted so "
                    "far; the cap is never exceeded."
                ),
            },
            "model": {
                "model_name": "Central",
                "model_name_description": TRUST,
                "actors": "owner, analysts, auditors, administrators",
                "is_many_release": True,
                "is_many_release_description": "One release per answered query.",
                "is_interactive": True,
                "is_interactive_description": "Analysts choose queries by earlier answers.",
                "is_dynamic": stored.version > 1,
                "is_dynamic_description": "A new version of the records keeps every account.",
            },
            "accounting": {
                "post_processing": "Intervals, consistency and suppression use released values.",
                "composition": COMPOSITION,
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": (
                    "The description is public and fixed before the records are read."
                ),
                "mechanisms": MECHANISMS,
                "justification": None,
            },
            "additional_information": None,
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


def _flavor(
    stored: StoredDataset, loss: Mapping[str, Any], unit: Mapping[str, Any]
) -> dict[str, Any]:
    in_rho = "rho" in loss["cap"]
    is_pure = loss["cap"]["delta"] == "0" and not in_rho
    name = "Zero-concentrated DP" if in_rho else "Pure DP" if is_pure else "Approximate DP"
    return {
        "name": name,
        "input_metric": f"the number of changes of this kind: {unit['hidden']}",
        "bound_on_input_distance": 1,
        "output_measure": "ρ of zCDP beside ε and δ" if in_rho else "ε and δ",
        "bound_on_output_distance": dict(loss["cap"]),
        "data_domain": f"a {stored.description['kind']} within its public description",
        "unprotected_quantities": "The public description, and the number of each version.",
    }
