"""``deploy/`` applied to the tests' API server as a user applies it, and what is asked of it then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import Api, Refused
from tests.cluster.server import ControlPlane
from tests.test_deploy import DEPLOY

__all__ = ["Deployed", "refused"]

#: Group, version and plural of what is applied and no other test must find; definitions may stay.
_REMOVED = (
    "rbac.authorization.k8s.io/v1/clusterroles",
    "rbac.authorization.k8s.io/v1/clusterrolebindings",
    "rbac.authorization.k8s.io/v1/roles",
    "rbac.authorization.k8s.io/v1/rolebindings",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "flowcontrol.apiserver.k8s.io/v1/flowschemas",
)


class Deployed:
    """A server to which folders of ``deploy/`` are applied; before and after it has of them definitions at most."""

    def __init__(self, api: Api, control_plane: ControlPlane) -> None:
        self.api, self._control_plane = api, control_plane
        self.remove()

    def apply(self, *folders: str) -> list[str]:
        """Apply folders, and wait until every definition is served; what kubectl says."""
        told = [self.kubectl("apply", "-k", str(DEPLOY / folder)) for folder in folders]
        self.wait()
        return "".join(told).splitlines()

    def wait(self) -> None:
        """Wait until every definition is served."""
        definitions = self.api.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        for each in definitions:
            self.api.wait_for(each, served=True)

    def remove(self) -> None:
        """Remove what other tests must not find."""
        for kind in _REMOVED:
            version, _, plural = kind.rpartition("/")
            for each in self.api.items(f"/apis/{kind}?labelSelector=app.kubernetes.io/part-of=placer"):
                namespace = each["metadata"].get("namespace")
                place = f"/apis/{version}/namespaces/{namespace}" if namespace else f"/apis/{version}"
                self.api.delete(f"{place}/{plural}/{each['metadata']['name']}")

    def kubectl(self, *arguments: str, text: str = "") -> str:
        return self._control_plane.kubectl(*arguments, text=text)

    def kubeconfig(self, account: str | None = None, url: str | None = None) -> str:
        """A kubeconfig of a service account in our namespace; by default of an administrator; ``url`` is of what is in
        front of the server.
        """
        if account is None:
            return str(self._control_plane.kubeconfig(url=url))
        return str(self._control_plane.kubeconfig(account, self._token(account), url))

    def given_to_pod(self, account: str, folder: Path) -> dict[str, str]:
        """What a kubelet gives a pod: variables, and the files in whose place the client library looks for them."""
        token, authority = folder / "token", folder / "ca.crt"
        token.write_text(self._token(account))
        authority.write_bytes(self._control_plane.certificate.read_bytes())
        host, _, port = self._control_plane.url.removeprefix("https://").rpartition(":")
        return {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "SERVICE_TOKEN_FILENAME": str(token),
            "SERVICE_CERT_FILENAME": str(authority),
        }

    def as_account(self, account: str) -> Api:
        """The server for a service account in our namespace."""
        return Api(self._control_plane.url, self._control_plane.certificate, self._token(account))

    def _token(self, account: str) -> str:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        made = self.api.call("POST", f"/api/v1/namespaces/placer/serviceaccounts/{account}/token", request)
        return str(made["status"]["token"])


def refused(work: Callable[..., Any], *arguments: Any) -> int:
    """The status with which something is refused."""
    with pytest.raises(Refused) as refusal:
        work(*arguments)
    return refusal.value.status
