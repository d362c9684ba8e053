"""The public description of a dataset, as its owner registers it.

The whole description is public and fixed before the records are read. Analysts read it, prices
follow from it, and the records must fit it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, Strict, StringConstraints, model_validator

from app.contract.amounts import Allowance
from app.contract.attributes import AttributeIn, Number, Numeric
from app.contract.models import Body, Name, NewName
from mechanisms.model.domains import (
    Dataset,
    Domain,
    GraphDomain,
    NeighbouringRelation,
    PrefixDomain,
    TableDomain,
)

#: The largest sizes that a registration may state. Within them, one machine can hold the prepared
#: records.
MAX_NODES = 50_000_000
MAX_ROWS = 100_000_000
MAX_ATTRIBUTES = 1_000
#: The most node ids that the registration itself may contain. A longer list is uploaded as a file.
MAX_INLINE_NODES = 1_000_000

NodeText = Annotated[str, StringConstraints(min_length=1, max_length=256)]
NodeNumber = Annotated[int, Strict(), Field(ge=-(2**63), lt=2**63)]


class NodeCount(Body):
    """The nodes 0 … count − 1."""

    count: int = Field(ge=1, le=MAX_NODES)


class NodeIds(Body):
    """The names of the nodes: integers or strings. Answers return them in the same type."""

    ids: tuple[NodeNumber, ...] | tuple[NodeText, ...] = Field(
        min_length=1, max_length=MAX_INLINE_NODES
    )

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.ids)) != len(self.ids):
            raise ValueError("a node id is repeated")
        return self


def _example(**members: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [members]})


class _Common(Body):
    name: NewName
    cap: Allowance
    description: str = Field(default="", max_length=4_000)
    records_per_person: int = Field(default=1, ge=1, le=1_000_000)
    minimum_count: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ROWS,
        description=(
            "Noisy counts below it come back suppressed: a policy on released numbers, no privacy."
        ),
    )

    def labels(self) -> tuple[int, ...] | tuple[str, ...] | None:
        """The names of the nodes that the registration lists; None if it lists none."""
        return None


class GraphRegistration(_Common):
    """A graph on public nodes. Without ``nodes`` their list is uploaded before the records."""

    model_config = _example(
        name="github",
        kind="graph",
        neighbouring="edge",
        nodes={"count": 37700},
        max_degree=10000,
        cap={"epsilon": "50", "delta": "0.00001"},
        description="developers who follow each other",
    )

    kind: Literal["graph"]
    neighbouring: Literal["edge"] = "edge"
    nodes: NodeCount | NodeIds | None = None
    max_degree: int | None = Field(default=None, ge=0, lt=MAX_NODES)

    @model_validator(mode="after")
    def _degree_below_count(self) -> Self:
        count = self.count()
        if count is not None and self.max_degree is not None and self.max_degree >= count:
            raise ValueError("max_degree is at most the number of nodes less one")
        return self

    def count(self) -> int | None:
        """How many nodes there are, or None while their list is still to come."""
        if self.nodes is None:
            return None
        return self.nodes.count if isinstance(self.nodes, NodeCount) else len(self.nodes.ids)

    def labels(self) -> tuple[int, ...] | tuple[str, ...] | None:
        return self.nodes.ids if isinstance(self.nodes, NodeIds) else None

    def domain(self) -> Domain | None:
        count = self.count()
        if count is None:
            return None
        degree = count - 1 if self.max_degree is None else self.max_degree
        return GraphDomain(nodes=count, max_degree=degree, labels=self.labels())


class TableRegistration(_Common):
    """A table of public attributes.

    ``add_remove`` needs ``max_rows``. ``replace`` takes ``rows``; without it, the first accepted
    upload fixes the number of rows permanently.
    """

    model_config = _example(
        name="adult",
        kind="table",
        neighbouring="add_remove",
        max_rows=100000,
        attributes=[
            {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
            {"name": "age", "kind": "numeric", "bounds": [0, 120], "bins": 10},
            {"name": "income", "kind": "categorical", "values": ["<=50K", ">50K"]},
        ],
        class_attribute="income",
        cap={"epsilon": "20", "delta": "0"},
    )

    kind: Literal["table"]
    neighbouring: Literal["add_remove", "replace"]
    attributes: tuple[AttributeIn, ...] = Field(min_length=1, max_length=MAX_ATTRIBUTES)
    class_attribute: Name | None = None
    rows: int | None = Field(default=None, ge=1, le=MAX_ROWS)
    max_rows: int | None = Field(default=None, ge=1, le=MAX_ROWS)
    min_rows: int | None = Field(default=None, ge=0, le=MAX_ROWS)
    person: Name | None = Field(
        default=None,
        description=(
            "The column of uploads that says whose a row is. At most records_per_person rows of "
            "each person are kept, and neighbours differ in a whole person."
        ),
    )

    @model_validator(mode="after")
    def _rows_fit_the_relation(self) -> Self:
        if self.neighbouring == "add_remove":
            if self.max_rows is None:
                raise ValueError("add_remove needs max_rows")
            if self.rows is not None:
                raise ValueError("rows is for replace; add_remove takes max_rows and min_rows")
            if (self.min_rows or 0) > self.max_rows:
                raise ValueError("min_rows is at most max_rows")
        elif self.max_rows is not None or self.min_rows is not None:
            raise ValueError("max_rows and min_rows are for add_remove; replace takes rows")
        if self.person is not None and self.neighbouring != "add_remove":
            raise ValueError("person is for add_remove: a whole person is there or not")
        return self

    @model_validator(mode="after")
    def _attributes_fit(self) -> Self:
        by_name = {attribute.name: attribute for attribute in self.attributes}
        if len(by_name) != len(self.attributes):
            raise ValueError("the name of an attribute is repeated")
        if self.person in by_name:
            raise ValueError("the column of persons is no attribute")
        has_open = any(
            one.kind == "categorical" and one.values == "open" for one in self.attributes
        )
        if self.person is not None and has_open:
            raise ValueError("a table of persons has no attributes whose values are open")
        if self.class_attribute is not None:
            attribute = by_name.get(self.class_attribute)
            if attribute is None:
                raise ValueError("class_attribute is not among the attributes")
            if isinstance(attribute, Numeric) and attribute.bins is None:
                raise ValueError("a numeric class_attribute needs bins")
            if attribute.kind == "categorical" and attribute.values == "open":
                raise ValueError("the values of a class_attribute are not open")
        return self

    def domain(self) -> Domain | None:
        return TableDomain(
            attributes=tuple(attribute.attribute() for attribute in self.attributes),
            class_attribute=self.class_attribute,
            rows=self.rows,
            max_rows=self.max_rows,
            min_rows=self.min_rows or 0,
            person=self.person,
        )


class PrefixRegistration(_Common):
    """A sorted public list, of which the first k values apply. Only the number k is private."""

    model_config = _example(
        name="steps",
        kind="prefix",
        neighbouring="prefix",
        public_values=[0, 10, 20, 50],
        cap={"epsilon": "5"},
    )

    kind: Literal["prefix"]
    neighbouring: Literal["prefix"] = "prefix"
    public_values: tuple[Number, ...] = Field(min_length=1, max_length=1_000_000)

    @model_validator(mode="after")
    def _sorted(self) -> Self:
        values = self.public_values
        if any(high < low for low, high in pairwise(values)):
            raise ValueError("public_values are sorted, smallest first")
        return self

    def domain(self) -> Domain | None:
        return PrefixDomain(tuple(float(value) for value in self.public_values))


Registration = Annotated[
    GraphRegistration | TableRegistration | PrefixRegistration, Field(discriminator="kind")
]

#: An example description of each kind of dataset, for the interactive documentation and the form of
#: registrations.
REGISTRATIONS: dict[str, Any] = {
    kind.__name__.removesuffix("Registration").lower(): {
        "value": kind.model_json_schema()["examples"][0]
    }
    for kind in (GraphRegistration, TableRegistration, PrefixRegistration)
}


def described(registration: Registration) -> Any:
    """The registration as replies show it: with defaults, and without its list of nodes."""
    description = registration.model_dump(
        mode="json", exclude={"name", "cap", "nodes"}, exclude_none=True
    )
    if isinstance(registration, GraphRegistration):
        count = registration.count()
        description["nodes"] = None if count is None else {"count": count}
    return description


def relation(registration: Registration) -> NeighbouringRelation:
    return NeighbouringRelation(registration.neighbouring)


def public_facts(registration: Registration) -> Dataset | None:
    """The dataset as prices read it; None for a graph whose node list is still to come."""
    domain = registration.domain()
    if domain is None:
        return None
    least = registration.minimum_count or 0
    persons = registration.records_per_person
    return Dataset(registration.name, relation(registration), domain, persons, least)
