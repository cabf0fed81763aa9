"""Label selectors and node selectors of Kubernetes, brought to the one form that the instance uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pydantic import TypeAdapter, ValidationError

from placer.instance.constraints import Requirement, Term
from placer.kube.base import LabelSelector, NodeRequirement, NodeSelector
from placer.manifests.wording import Wrong, wrongs

__all__ = ["Requirements", "label_requirements", "matches", "node_terms", "read_node_selector"]

#: Requirements that must all hold; none at all takes everything.
Requirements = tuple[Requirement, ...]


def label_requirements(selector: LabelSelector) -> Requirements:
    """Bring a label selector to sorted requirements; an empty one becomes none, which takes everything."""
    labels = (Requirement(key, "In", (value,)) for key, value in (selector.match_labels or {}).items())
    expressions = (
        _requirement(expression.key, expression.operator, expression.values)
        for expression in selector.match_expressions or ()
    )
    return tuple(sorted({*labels, *expressions}))


def matches(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every requirement."""
    return all(requirement.holds(labels.get(requirement.key)) for requirement in requirements)


def node_terms(selector: NodeSelector) -> tuple[Term, ...]:
    """Bring a node selector to sorted terms, of which one must match; a term without expressions matches nothing."""
    return tuple(
        sorted(
            {
                Term(_node_requirements(term.match_expressions), _node_requirements(term.match_fields))
                for term in selector.node_selector_terms
            }
        )
    )


def read_node_selector(written: object) -> tuple[tuple[Term, ...], tuple[Wrong, ...]]:
    """Read a node selector that is no part of an object, plain values; its terms, and what is wrong with it."""
    try:
        return node_terms(TypeAdapter(NodeSelector).validate_json(json.dumps(written))), ()
    except ValidationError as error:
        return (), tuple(wrongs(error))


def _node_requirements(expressions: Iterable[NodeRequirement] | None) -> Requirements:
    return tuple(sorted({_requirement(each.key, each.operator, each.values) for each in expressions or ()}))


def _requirement(key: str, operator: str, values: tuple[str, ...] | None) -> Requirement:
    return Requirement(key, operator, tuple(sorted(set(values or ()))))
