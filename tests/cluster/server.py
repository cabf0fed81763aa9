"""A real etcd and a real kube-apiserver for a test session, on this machine alone; what a test may do to them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import urllib3

__all__ = ["GANG_GATES", "ControlPlane"]

#: Seconds within which a part must be ready; it takes three, more on a busy machine.
PATIENCE = 600

#: What of Kubernetes' own gangs is off where nobody asks for it: the kinds, their topology, gangs of gangs.
GANG_GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true"

#: Programs written in Go look for garbage when their heap has grown fivefold, not twofold: a third less of their work.
_ENVIRONMENT = {**os.environ, "GOGC": "400"}

#: SEC 1 private key on P-256: before and after its 32 bytes. The public key is worked out from it.
_KEY_START = bytes.fromhex("30310201010420")
_KEY_END = bytes.fromhex("a00a06082a8648ce3d030107")


class ControlPlane:
    """etcd and kube-apiserver, a process each; kube-scheduler and others on demand.

    Parameters
    ----------
    programs
        Folder with the programs.
    folder
        For data, certificates and logs (``NAME.log``); must be empty.
    gangs
        Versions in which the API server has the gangs of Kubernetes itself; CompositePodGroups are of v1alpha3.
    without
        Versions of groups that it does not serve, as ``events.k8s.io/v1``.
    """

    def __init__(
        self,
        programs: Path,
        folder: Path,
        gangs: Sequence[str] = ("v1beta1", "v1alpha3"),
        without: Sequence[str] = (),
    ) -> None:
        self.programs, self.folder = programs, folder
        self._served = [*(f"scheduling.k8s.io/{each}=true" for each in gangs), *(f"{each}=false" for each in without)]
        self.token = os.urandom(16).hex()
        self._ports = [_held_port() for _ in range(3)]
        own, *etcd = (each.getsockname()[1] for each in self._ports)
        self.url = f"https://127.0.0.1:{own}"
        self._etcd = [f"http://127.0.0.1:{each}" for each in etcd]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    # ------------------------------------------------------------------------------------------------ life and death

    def start(self) -> None:
        """Start both and wait until they serve."""
        (self.folder / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        _write_key(self.folder / "service-accounts.key")
        self.start_etcd()
        self.start_api_server()

    def stop(self) -> None:
        """Stop everything that runs, the API server before etcd."""
        for name in reversed(tuple(self._processes)):
            self.end(name)
        for each in self._ports:
            each.close()

    def start_etcd(self) -> None:
        client, peer = self._etcd
        self.run(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--socket-reuse-port",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        )

    def start_api_server(self, *, flow_control: bool = False) -> None:
        """Start the API server and wait until it is ready; ``flow_control``: it may say 429."""
        unlimited = ("--max-requests-inflight=0", "--max-mutating-requests-inflight=0")
        key = self.folder / "service-accounts.key"
        self.run(
            "kube-apiserver",
            f"--etcd-servers={self._etcd[0]}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",  # else it looks for a default route, which a closed machine has not
            f"--secure-port={self.url.rpartition(':')[2]}",
            "--permit-port-sharing",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self.folder / 'certs'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={key}",
            f"--service-account-key-file={key}",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            # No controller makes service accounts here, none takes the taint off new nodes, none lets PodGroups go.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,PodGroupProtection",
            f"--feature-gates={GANG_GATES}",
            f"--runtime-config={','.join(self._served)}",
            *([] if flow_control else ["--enable-priority-and-fairness=false", *unlimited]),
        )
        self._wait_until_ready()

    def start_kube_scheduler(self) -> None:
        """Start kube-scheduler, which a folder that the user gives need not have."""
        config = self.kubeconfig("kube-scheduler")
        self.run(
            "kube-scheduler",
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--feature-gates={GANG_GATES}",
        )

    def run(self, name: str, *arguments: str) -> None:
        """Start a program under its name; what it says goes to its log."""
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [str(self.programs / name), *arguments]
            self._processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                env=_ENVIRONMENT,
            )

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a program and wait for it; its port is free only then."""
        process = self._processes.pop(name)
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}: {self.log(name)[-2000:]}")
            if self._is_ready():
                return
            time.sleep(0.1)
        raise RuntimeError(f"kube-apiserver is not ready after {PATIENCE} s: {self.log('kube-apiserver')[-2000:]}")

    def _is_ready(self) -> bool:
        if not self.certificate.exists():
            return False
        with urllib3.PoolManager(ca_certs=str(self.certificate)) as pool, suppress(urllib3.exceptions.HTTPError):
            headers = {"Authorization": f"Bearer {self.token}"}
            return pool.request("GET", f"{self.url}/readyz", headers=headers, retries=False, timeout=5).status == 200
        return False

    # ---------------------------------------------------------------------------------------------------- ways to it

    @property
    def certificate(self) -> Path:
        """What the server signs itself with: the authority for its address."""
        return self.folder / "certs" / "apiserver.crt"

    def kubeconfig(self, name: str = "admin", token: str | None = None, url: str | None = None) -> Path:
        """Write a kubeconfig for a token; by default that of an administrator. Its context is called ``name``."""
        authority = b64encode(self.certificate.read_bytes()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [
                {"name": "test", "cluster": {"server": url or self.url, "certificate-authority-data": authority}}
            ],
            "users": [{"name": name, "user": {"token": token or self.token}}],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name}}],
        }
        path = self.folder / f"kubeconfig-{name}.json"
        path.write_text(json.dumps(document))
        return path

    def kubectl(self, *arguments: str, text: str = "", check: bool = True) -> str:
        """What kubectl prints, as an administrator; ``text`` is its standard input."""
        command: Sequence[str] = [str(self.programs / "kubectl"), f"--kubeconfig={self.kubeconfig()}", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=_ENVIRONMENT)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout


def _held_port() -> socket.socket:
    """A port that nothing else gets as long as the socket is open, not even while what listens there is dead.

    A port that is merely free may be given to any connection that another process opens before the server listens.
    The server shares this one with a socket that never listens.
    """
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    found.bind(("127.0.0.1", 0))
    return found


def _write_key(path: Path) -> None:
    """Make a key that service accounts' tokens are signed with."""
    number = b"\x00" + os.urandom(31)  # below the order of the group, and not 0
    text = b64encode(_KEY_START + number + _KEY_END).decode()
    path.write_text(f"-----BEGIN EC PRIVATE KEY-----\n{text}\n-----END EC PRIVATE KEY-----\n")
    path.chmod(0o600)
