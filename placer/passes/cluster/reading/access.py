"""Rights of the user that placer runs as, by ``SelfSubjectAccessReview``, which every known user may ask."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Writer

__all__ = ["Right", "allows", "who_we_are"]

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A right, as a rule of RBAC grants it; ``pods/binding`` is a subresource.

    An empty namespace means everywhere, an empty name all objects.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        place = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {what}{self.name and f' {self.name}'}{place}"

    def within(self, namespace: str) -> Right:
        """The same right in one namespace; an empty one: everywhere."""
        return replace(self, namespace=namespace)

    @property
    def rule(self) -> str:
        """The rule that grants it, and the role that it belongs to."""
        names = f", resourceNames: [{self.name}]" if self.name else ""
        role = f"a Role of namespace {self.namespace}" if self.namespace else "a ClusterRole"
        group = self.group or '""'
        return f"{{apiGroups: [{group}], resources: [{self.resource}]{names}, verbs: [{self.verb}]}} in {role}"


def allows(server: Writer, right: Right) -> bool:
    """Whether the server grants a right.

    Raises
    ------
    ClusterError
        The server gives no answer to that.
    """
    resource, _, subresource = right.resource.partition("/")
    asked = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": right.verb,
        "namespace": right.namespace,
        "name": right.name,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: each for key, each in asked.items() if each}},
    }
    answer = server.send("POST", _REVIEWS, body, timeout=_PATIENCE)
    if answer.status != 201:
        raise ClusterError(f"{_REVIEWS}: found status {answer.status} {answer.message}, expected 201")
    try:
        return msgspec.json.decode(answer.text)["status"].get("allowed") is True
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError) as error:
        raise ClusterError(f"{_REVIEWS}: found no answer to the question: {error}") from error


def who_we_are(server: Writer) -> str:
    """The name that the server has for us; empty where it gives none, as before Kubernetes 1.28."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = server.send("POST", _WHO, body, timeout=_PATIENCE)
    if answer.status != 201:
        return ""
    try:
        return str(msgspec.json.decode(answer.text)["status"]["userInfo"]["username"])
    except (msgspec.DecodeError, LookupError, TypeError):
        return ""
