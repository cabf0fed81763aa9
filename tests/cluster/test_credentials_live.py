"""A token that a real API server takes no more: in a loop, its watches and its Lease."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from placer.passes.cluster import Client
from tests.cluster.api import Api, Refused
from tests.cluster.loops import looping
from tests.cluster.passes import gang
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.support import node
from tests.waiting import wait_until

NEVER = 3600.0
_SECRETS = "/api/v1/namespaces/placer/secrets"


class Tokens:
    """Tokens of a service account that may do everything; each ends when the Secret goes that it is bound to."""

    def __init__(self, api: Api, control_plane: ControlPlane) -> None:
        self._api, self._control_plane = api, control_plane
        self._secrets: dict[str, str] = {}

    def issue(self) -> str:
        """A new token."""
        name = f"token-{len(self._secrets)}"
        self._api.delete(f"{_SECRETS}/{name}")
        secret = self._api.call("POST", _SECRETS, {"metadata": {"name": name}})
        reference = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": secret["metadata"]["uid"]}
        asked = {"spec": {"boundObjectRef": reference}}
        made = self._api.call("POST", "/api/v1/namespaces/placer/serviceaccounts/rotating/token", asked)
        token = str(made["status"]["token"])
        self._secrets[token] = name
        return token

    def revoke(self, token: str) -> None:
        """End a token; returns when the server, which keeps for ten seconds what it has found out, refuses it."""
        self._api.delete(f"{_SECRETS}/{self._secrets[token]}")
        theirs = Api(self._control_plane.url, self._control_plane.certificate, token)
        wait_until(lambda: _is_unknown(theirs), "the end of a token")

    def revoke_all(self) -> None:
        for name in self._secrets.values():
            self._api.delete(f"{_SECRETS}/{name}")


def _is_unknown(api: Api) -> bool:
    try:
        api.get("/api/v1/namespaces/default")
    except Refused as refusal:
        return refusal.status == 401
    return False


@pytest.fixture
def tokens(cluster: Api, control_plane: ControlPlane, install: Callable[[str], None]) -> Iterator[Tokens]:
    install("volcano")
    group = "rbac.authorization.k8s.io"
    accounts, bindings = "/api/v1/namespaces/placer/serviceaccounts", f"/apis/{group}/v1/clusterrolebindings"
    cluster.delete(f"{accounts}/rotating")
    cluster.delete(f"{bindings}/rotating")
    cluster.call("POST", accounts, {"metadata": {"name": "rotating"}})
    subject = {"kind": "ServiceAccount", "name": "rotating", "namespace": "placer"}
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": group}
    cluster.call("POST", bindings, {"metadata": {"name": "rotating"}, "roleRef": role, "subjects": [subject]})
    found = Tokens(cluster, control_plane)
    yield found
    found.revoke_all()
    cluster.delete(f"{bindings}/rotating")
    cluster.delete(f"{accounts}/rotating")


class _File:
    """A file that a kubeconfig names (``tokenFile``), replaced as a kubelet replaces it."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        self._control_plane, self._folder = control_plane, folder

    @property
    def path(self) -> Path:
        return self._folder / "token"

    def give(self, token: str) -> None:
        new = self._folder / "new"
        new.write_text(token)
        new.replace(self.path)

    def kubeconfig(self, url: str | None = None) -> str:
        path = self._control_plane.kubeconfig("rotating", url=url)
        document = json.loads(path.read_text())
        document["users"][0]["user"] = {"tokenFile": str(self.path)}
        path.write_text(json.dumps(document))
        return str(path)


@pytest.fixture
def source(control_plane: ControlPlane, tmp_path: Path) -> _File:
    return _File(control_plane, tmp_path)


def test_a_loop_goes_on_with_the_next_token_as_if_nothing_had_happened(
    cluster: Api, control_plane: ControlPlane, tokens: Tokens, source: _File
) -> None:
    """Its watches are opened again by the new one, so it hears of what comes; passes, Lease and Events use it, too."""
    cluster.create(node("n1", cpu=8), *gang("first", 2))
    old = tokens.issue()
    source.give(old)
    with looping(control_plane, NEVER, client=Client.connect(source.kubeconfig())) as loop:
        assert loop.bound == 2
        source.give(tokens.issue())
        tokens.revoke(old)
        cluster.create(*gang("second", 2))
        wait_until(lambda: loop.bound == 4, "the binding of what came after the end of the token")
        cluster.create(live_pod("third", cpu=1))
        wait_until(lambda: loop.bound == 5, "another one")
        assert [
            (each.report.error, each.report.troubles)
            for each in loop.passes
            if each.report.error or each.report.troubles
        ] == []
    assert loop.reasons == []
    lease = cluster.get("/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer")
    assert "holderIdentity" not in lease["spec"]  # it was given back, which the old token could not
