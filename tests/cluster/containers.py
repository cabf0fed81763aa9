"""A kubelet that starts what pods of placer say: their arguments in a process, with their token, ConfigMap and version.

What a container is given comes from objects of the API server alone: the arguments and the version from the pod, files
from the ConfigMap that it mounts, a token of its service account. Ports are those of a network of its own, as in a
pod. Logs are handed out as a kubelet does, so ``kubectl logs`` has them. Other pods run without a process.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3

from tests.cluster.api import Api, Refused
from tests.cluster.background import at_work
from tests.cluster.server import ControlPlane
from tests.support import node

__all__ = ["Containers", "Ended", "containers"]

#: Starts the command line as a pod has it: what is mounted into a container is found in a folder.
_AS_POD = """
import sys
from pathlib import Path
import kubernetes.config.incluster_config as account
import placer.base.version
from placer.passes.cluster.reading import client
placer.base.version.__version__, folder = sys.argv[1], Path(sys.argv.pop(2))
del sys.argv[1]
account.SERVICE_TOKEN_FILENAME = str(folder / "token")
account.SERVICE_CERT_FILENAME = str(folder / "ca.crt")
client._NAMESPACE = str(folder / "namespace")
from placer.cli import main
sys.exit(main())
"""
#: Seconds between two looks at the pods.
_EVERY = 0.1


@dataclass(frozen=True)
class Ended:
    """What a container has left: the pod that it was in, its version, exit code, and all that it said."""

    pod: str
    version: str
    code: int
    said: str


@dataclass
class _Container:
    pod: dict[str, Any]
    process: subprocess.Popen[bytes]
    log: Path
    version: str
    ready_at: str | None = None  #: what its probe asks
    told: str = ""  #: what was last said of it

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@dataclass
class Containers:
    """The kubelet of one node.

    Parameters
    ----------
    control_plane, api
        The server.
    folder
        For what containers are given and say.
    url
        What its containers take for the API server's address.
    """

    control_plane: ControlPlane
    api: Api
    folder: Path
    url: str
    name: str = "n1"
    before_end: Callable[[], None] = lambda: None  #: is called before a process is told to end
    ended: list[Ended] = field(default_factory=list)  #: in the order in which they ended
    _running: dict[str, _Container] = field(default_factory=dict)
    _logs: dict[str, Path] = field(default_factory=dict)

    def log(self, path: str) -> bytes | None:
        """What the container said that a path of the kubelet's API is about: ``/containerLogs/NAMESPACE/POD/NAME``."""
        parts = path.partition("?")[0].split("/")
        found = self._logs.get("/".join(parts[2:4])) if parts[1] == "containerLogs" else None
        return None if found is None else found.read_bytes()

    def said(self) -> str:
        """All that containers have said so far."""
        return "".join(each.read_text(encoding="utf-8") for each in list(self._logs.values()))

    def kill(self) -> None:
        for each in self._running.values():
            each.process.kill()
            each.process.wait()

    def step(self) -> None:
        """Start, report and end what is on the node now."""
        pods = self.api.items(f"/api/v1/pods?fieldSelector=spec.nodeName={self.name}")
        for pod in pods:
            uid, metadata = pod["metadata"]["uid"], pod["metadata"]
            found = self._running.get(uid)
            if metadata.get("deletionTimestamp"):
                if found is None or found.process.poll() is not None:
                    self._finish(uid)
                    self.api.delete(_path(pod), uid)
                else:
                    self.before_end()
                    found.process.terminate()
                    self._wait(found)
            elif found is not None:
                self._report(pod, found)
            elif pod["status"].get("phase") == "Pending":
                if pod["spec"]["containers"][0]["image"].partition(":")[0].endswith("placer"):
                    self._running[uid] = self._start(pod)
                else:
                    self._say(pod, {"phase": "Running", "conditions": [_ready(True)]})
        for uid in self._running.keys() - {each["metadata"]["uid"] for each in pods}:  # deleted by force
            self._running[uid].process.kill()
            self._finish(uid)

    def _wait(self, container: _Container) -> None:
        grace = container.pod["spec"]["terminationGracePeriodSeconds"]
        try:
            container.process.wait(grace)
        except subprocess.TimeoutExpired:
            container.process.kill()
            container.process.wait()

    def _start(self, pod: dict[str, Any]) -> _Container:
        spec, metadata = pod["spec"], pod["metadata"]
        folder = self.folder / metadata["uid"]
        folder.mkdir()
        place = f"/api/v1/namespaces/{metadata['namespace']}"
        if spec["automountServiceAccountToken"]:
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            path = f"{place}/serviceaccounts/{spec['serviceAccountName']}/token"
            (folder / "token").write_text(self.api.call("POST", path, request)["status"]["token"])
        (folder / "ca.crt").write_bytes(self.control_plane.certificate.read_bytes())
        (folder / "namespace").write_text(metadata["namespace"])
        (container,) = spec["containers"]
        version = container["image"].rpartition(":")[2]
        arguments = list(container["args"])
        mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        for volume in spec["volumes"]:
            if "configMap" in volume:
                data = self.api.get(f"{place}/configmaps/{volume['configMap']['name']}")["data"]
                (folder / volume["name"]).mkdir()
                for name, text in data.items():
                    (folder / volume["name"] / name).write_text(text, encoding="utf-8")
                there = str(folder / volume["name"])
                arguments = [each.replace(mounted[volume["name"]], there) for each in arguments]
        probe = container.get("readinessProbe")
        ready_at = None
        if probe is not None:
            (port,) = (each for each in container["ports"] if each["name"] == probe["httpGet"]["port"])
            own = _free_port()
            arguments = [each.replace(f"=:{port['containerPort']}", f"=127.0.0.1:{own}") for each in arguments]
            ready_at = f"http://127.0.0.1:{own}{probe['httpGet']['path']}"
        host, _, port_of_server = self.url.removeprefix("https://").removeprefix("http://").rpartition(":")
        environment = {
            "PATH": str(Path(sys.executable).parent),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "HOME": str(folder),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port_of_server,
            "HOSTNAME": metadata["name"],
        }
        log = folder / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-c", _AS_POD, version, str(folder), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
            )
        self._logs[f"{metadata['namespace']}/{metadata['name']}"] = log
        return _Container(pod, process, log, version, ready_at)

    def _report(self, pod: dict[str, Any], container: _Container) -> None:
        code, now = container.process.poll(), {"name": pod["spec"]["containers"][0]["name"], "image": "", "imageID": ""}
        if code is None:
            ready = container.ready_at is None or _answers(container.ready_at)
            phase, state = "Running", {"running": {}}
        else:
            self._finish(pod["metadata"]["uid"])
            ready, phase = False, "Failed" if code else "Succeeded"
            state = {"terminated": {"exitCode": code}}
        if container.told != (told := f"{phase} {ready}"):
            container.told = told
            one = {**now, "ready": ready, "restartCount": 0, "state": state}
            self._say(pod, {"phase": phase, "conditions": [_ready(ready)], "containerStatuses": [one]})

    def _finish(self, uid: str) -> None:
        """Keep what a container has left."""
        if (found := self._running.pop(uid, None)) is not None:
            name = found.pod["metadata"]["name"]
            self.ended.append(Ended(name, found.version, found.process.wait(), found.said))

    def _say(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        others = [each for each in pod["status"].get("conditions") or () if each["type"] != "Ready"]
        status["conditions"] = [*others, *status["conditions"]]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status["startTime"] = pod["status"].get("startTime") or now
        try:
            self.api.patch(f"{_path(pod)}/status", {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status})
        except Refused as refusal:
            if refusal.status not in (404, 409):  # deleted meanwhile
                raise


def _ready(yes: bool) -> dict[str, str]:
    return {"type": "Ready", "status": "True" if yes else "False"}


def _path(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(url: str) -> bool:
    """Whether a probe is answered with 200."""
    try:
        return urllib3.request("GET", url, retries=False, timeout=5).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def _handler(log: Callable[[str], bytes | None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = log(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def containers(control_plane: ControlPlane, api: Api, folder: Path, url: str) -> Iterator[Containers]:
    """A node with such a kubelet, for as long as the block lasts; what goes wrong in it is raised at its end."""
    found = Containers(control_plane, api, folder, url)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(found.log))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = control_plane.certificate
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    document = node(found.name, cpu=16, memory="64Gi", pods=1000)
    document["status"]["addresses"] = [{"type": "InternalIP", "address": "127.0.0.1"}]
    document["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": server.server_port}}
    api.create(document)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with at_work(found.step, _EVERY):
            yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        found.kill()
