"""Names in paths of an API server: only those that objects can have.

What names an object is most often a tenant's text, such as an annotation, and may hold anything. Escaping it is no way
out: a server that reads ``..%2F`` takes it for the step up that it says. So a name that no object can have gets into no
path, and nothing is asked.
"""

from __future__ import annotations

from placer.errors import ClusterError
from placer.kube.base import DNS_SUBDOMAIN, LONGEST_NAME
from placer.legible import shown

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
    """A name as a part of a path.

    Raises
    ------
    ClusterError
        No object can be called so.
    """
    if not is_name(name):
        raise ClusterError(f"found {shown(name)!r}, expected a name that an object of Kubernetes can have")
    return name
