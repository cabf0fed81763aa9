"""The image of ``deploy/Dockerfile``, built by buildah and started as in a cluster, and the list of what it holds.

Where the registry of its base cannot be reached, a Debian of the same release and Python takes its place, which
mmdebstrap makes; every step of the Dockerfile is done all the same. Nothing is left behind but, where
``PLACER_ARTIFACTS`` names a folder, ``sbom.json`` in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution, distributions
from pathlib import Path
from typing import Any

import pytest
import yaml

import placer
from tests.tools import require

ROOT = Path(__file__).parent.parent
#: Python and the release of Debian that the Dockerfile names; the base that stands in for it has both.
BASE = re.compile(r"ARG BASE=(python:(3\.\d+)\.\d+-slim-(\w+)@sha256:\w+)")
PACKAGES = "python3,python3-venv,python3-pip,python-is-python3,ca-certificates"
CERTIFICATES = Path("/etc/ssl/certs")
BUNDLE = CERTIFICATES / "ca-certificates.crt"


@dataclass(frozen=True)
class Builder:
    """Buildah with a store of its own."""

    program: str
    store: Path

    def __call__(self, *words: str, timeout: float = 1200) -> subprocess.CompletedProcess[str]:
        """Run a command of it."""
        command = [self.program, "--root", str(self.store / "root"), "--runroot", str(self.store / "run"), *words]
        environment = os.environ | {"BUILDAH_ISOLATION": "chroot"}
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, env=environment)

    def done(self, *words: str) -> str:
        """What a command says that has to succeed."""
        ended = self(*words)
        assert ended.returncode == 0, f"buildah {' '.join(words)}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        return ended.stdout.strip()


@dataclass(frozen=True)
class Image:
    """The image that was built, and a container of it."""

    build: Builder
    container: str
    config: dict[str, Any]

    def run(self, *words: str, mount: Path | None = None, at: str = "/given") -> subprocess.CompletedProcess[str]:
        """Start it with some words behind its entry point, and with nothing of the repository but what is mounted."""
        volumes = [] if mount is None else ["-v", f"{mount}:{at}:ro"]
        return self.build("run", *volumes, self.container, "--", *self.config["Entrypoint"], *words)

    @property
    def root(self) -> Path:
        """Its root file system."""
        return Path(self.build.done("mount", self.container))


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Image]:
    build = Builder(require("buildah", "apt-get install buildah"), tmp_path / "store")
    require("mmdebstrap", "apt-get install mmdebstrap")
    able = build("from", "scratch")
    if os.geteuid() or able.returncode:  # no tool is missing: a sandbox may forbid what building takes, whoever asks
        pytest.skip(f"buildah cannot build here, as root in a container it can: {able.stderr.strip()[-300:]}")
    try:
        build.done(
            "bud",
            *("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro", "--build-arg", f"BASE={base(build)}"),
            *("--ignorefile", str(ROOT / "deploy" / "Dockerfile.dockerignore")),
            *("--file", str(ROOT / "deploy" / "Dockerfile"), "--tag", "localhost/placer", str(ROOT)),
        )
        container = build.done("from", "--pull-never", "localhost/placer")
        found = json.loads(build.done("inspect", "--type", "image", "localhost/placer"))
        yield Image(build, container, found["OCIv1"]["config"])
    finally:
        build("rm", "--all")
        build("rmi", "--all", "--force")


def base(build: Builder) -> str:
    """The image that the Dockerfile starts from, or one like it."""
    match = BASE.search((ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8"))
    assert match is not None
    name, python, release = f"docker.io/library/{match[1]}", match[2], match[3]
    try:
        if build("pull", "--quiet", name, timeout=60).returncode == 0:
            return name
    except subprocess.TimeoutExpired:
        pass  # no registry answers
    packed = build.store / "base.tar"
    made = subprocess.run(
        ["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", release, str(packed)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:  # no tool is missing: without a registry and a mirror there is nothing to build from
        pytest.skip(f"neither {name} nor packages of Debian {release} can be had here: {made.stderr.strip()[-300:]}")
    container = build.done("from", "scratch")
    build.done("add", "--quiet", container, str(packed), "/")
    assert f"Python {python}." in build.done("run", container, "--", "python3", "--version")
    # Debian's own pip installs beside its packages only where it is told to; certificates are those of this machine.
    build.done("config", "--env", "PIP_BREAK_SYSTEM_PACKAGES=1", "--env", f"PIP_CERT={BUNDLE}", container)
    build.done("commit", "--quiet", container, "localhost/base")
    build.done("rm", container)
    packed.unlink()
    return "localhost/base"


def solves_what_it_is_given_with_nobodys_rights(image: Image) -> None:
    """Nothing of its own can be written, and there is no placer but the one that was installed."""
    ended = image.run("--version")
    assert (ended.returncode, ended.stdout) == (0, f"placer {placer.__version__}\n"), ended.stderr
    given = ROOT / "instances" / "tiny"
    ended = image.run("solve", "/given/o1_placed.yaml", "--quiet", "-o", "/tmp/placement.json", mount=given)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((image.root / "tmp" / "placement.json").read_text(encoding="utf-8"))["verdict"] == "OPTIMAL"
    assert image.config["User"] == "65532:65532"
    program = "import os, placer; print(os.getuid(), os.access('/opt/placer', os.W_OK), placer.__file__)"
    python = image.build.done("run", image.container, "--", "/opt/placer/bin/python", "-c", program)
    assert python == "65532 False /opt/placer/lib/python3.11/site-packages/placer/__init__.py"


def of_base(kind: str) -> dict[str, Any]:
    """The one object of a kind in ``deploy/base``."""
    files = sorted((ROOT / "deploy" / "base").glob("*.yaml"))
    documents = [each for path in files for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    (found,) = [each for each in documents if each and each["kind"] == kind]
    return dict(found)


def starts_as_the_objects_of_the_cluster_say(image: Image, tmp_path: Path) -> None:
    """The CronJob gives arguments to the entry point, and no command in its place; its configuration is read."""
    (container,) = of_base("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert "command" not in container
    ended = image.run(container["args"][0], "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "usage: placer run" in ended.stdout
    folder = tmp_path / "config"
    folder.mkdir()
    for name, text in of_base("ConfigMap")["data"].items():
        (folder / name).write_text(text, encoding="utf-8")
    ended = image.run(*container["args"], "--kubeconfig", "/nowhere", mount=folder, at="/etc/placer")
    assert ended.returncode
    assert "/nowhere: " in ended.stderr, ended.stderr


def is_listed_completely(image: Image, tmp_path: Path) -> None:
    """Every distribution by name and version, with a licence where it names one, placer itself, and what it runs on."""
    file, root = tmp_path / "sbom.json", image.root
    subprocess.run([sys.executable, str(ROOT / "deploy" / "sbom.py"), str(root), "-o", str(file)], check=True)
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["bomFormat"] == "CycloneDX"
    of_debian = {each["name"] for each in document["components"] if each.get("purl", "").startswith("pkg:deb/debian/")}
    installed = image.build.done(
        "run", image.container, "--", "dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\\n"
    )
    assert of_debian == {line.split()[1] for line in installed.splitlines() if line.startswith("installed ")}
    others = [each for each in document["components"] if not each.get("purl", "").startswith("pkg:deb/")]
    of_python = [each for each in others if each["type"] == "library"]
    listed = {(each["name"].lower(), each["version"]) for each in of_python}
    (folder,) = root.glob("opt/placer/lib/python3*/site-packages")
    there = {(each.metadata["Name"].lower(), each.version) for each in distributions(path=[str(folder)])}
    assert listed == there
    locked = re.findall(r"^([\w.-]+)==([^ ;\\]+)", (ROOT / "deploy" / "requirements.lock").read_text(), re.MULTILINE)
    assert {(name.lower(), version) for name, version in locked} <= listed
    assert "kube-placer" in {name for name, _ in listed}
    # What protobuf says of its licence is in words that no list of licences has.
    assert [each["name"] for each in of_python if not each.get("licenses")] == ["protobuf"]
    if folder_wanted := os.environ.get("PLACER_ARTIFACTS"):
        Path(folder_wanted).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, Path(folder_wanted, "sbom.json"))


@pytest.mark.exhaustive
def test_it_is_built_and_started(image: Image, tmp_path: Path) -> None:
    """One test, so that two workers do not build it twice."""
    solves_what_it_is_given_with_nobodys_rights(image)
    starts_as_the_objects_of_the_cluster_say(image, tmp_path)
    is_listed_completely(image, tmp_path)


STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u13
Description: GNU C Library
 Version: 1 stands in its description, too

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1.0

Package: tzdata
Status: install ok installed
Architecture: all
Version: 2025b-0+deb12u2
"""


@pytest.mark.parametrize("whole", [True, False], ids=["one file", "a file for each package"])
def test_a_root_file_system_is_listed_with_what_it_runs_on(whole: bool, tmp_path: Path) -> None:
    """Made here of some of what is installed; that of the image is read as well where it can be built."""
    environment = tmp_path / "root" / "opt" / "placer"
    packages = environment / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    given = {name: distribution(name) for name in ("kube-placer", "msgspec", "urllib3")}
    for name, found in given.items():
        folder = packages / f"{name.replace('-', '_')}-{found.version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(found.read_text("METADATA") or "", encoding="utf-8")
    (environment / "pyvenv.cfg").write_text("home = /usr/local/bin\nversion = 3.11.14\n", encoding="utf-8")
    (tmp_path / "root" / "etc").mkdir()
    (tmp_path / "root" / "etc" / "os-release").write_text('ID=debian\nVERSION_ID="12"\n', encoding="utf-8")
    dpkg = tmp_path / "root" / "var" / "lib" / "dpkg"
    (dpkg / "status.d").mkdir(parents=True)
    for number, text in enumerate([STATUS] if whole else STATUS.split("\n\n")):
        path = dpkg / "status" if whole else dpkg / "status.d" / str(number)
        path.write_text(text, encoding="utf-8")
    written = tmp_path / "sbom.json"
    command = [sys.executable, str(ROOT / "deploy" / "sbom.py"), str(tmp_path / "root"), "-o", str(written)]
    subprocess.run(command, check=True, capture_output=True)
    document = json.loads(written.read_text(encoding="utf-8"))
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "placer")
    assert document["metadata"]["component"]["version"] == given["kube-placer"].version
    found = {each["name"]: each for each in document["components"]}
    wanted = {name: each.version for name, each in given.items()} | {"python": "3.11.14", "debian": "12"}
    wanted |= {"libc6": "2.36-9+deb12u13", "tzdata": "2025b-0+deb12u2"}
    assert {name: each["version"] for name, each in found.items()} == wanted
    assert found["libc6"]["purl"] == "pkg:deb/debian/libc6@2.36-9%2Bdeb12u13?arch=amd64&distro=debian-12"
    assert found["msgspec"]["licenses"]
    references = [each["bom-ref"] for each in document["components"]]
    assert len(references) == len(set(references))


def test_a_folder_without_an_environment_has_no_list(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "deploy" / "sbom.py"), str(tmp_path), "-o", str(tmp_path / "sbom.json")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "found 0 folders opt/placer/lib/python3*/site-packages, expected one" in ended.stderr
    assert not (tmp_path / "sbom.json").exists()
