"""Names in paths of an API server: only those that objects can have.

Names are often tenants' texts. Escaping does not help, since a server may read ``..%2F`` as a step up.
"""

from __future__ import annotations

from placer.base.errors import ClusterError
from placer.base.text import shown
from placer.kube.base import DNS_SUBDOMAIN, LONGEST_NAME

__all__ = ["is_name", "segment"]


def is_name(text: str) -> bool:
    """Whether an object of Kubernetes, or of a custom kind, can be called so.

    Examples
    --------
    >>> is_name("train-0.eu"), is_name("../../other/pods/x"), is_name(".."), is_name("a%2Fb"), is_name("x" * 254)
    (True, False, False, False, False)
    """
    return len(text) <= LONGEST_NAME and DNS_SUBDOMAIN.fullmatch(text) is not None


def segment(name: str) -> str:
    """A name as a part of a path; ClusterError where no object can have it."""
    if not is_name(name):
        raise ClusterError(f"found {shown(name)!r}, expected a name that an object of Kubernetes can have")
    return name
