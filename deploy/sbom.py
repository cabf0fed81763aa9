"""Writes what an image holds as a CycloneDX document: distributions of Python with version, licence and sources, the
Python that runs them, the operating system and each of its packages.

``python deploy/sbom.py ROOT -o sbom.json`` reads the root file system of an image, unpacked or mounted
(``buildah mount``, ``docker export``); nothing of it is run, so the image may be of another architecture. Packages are
those that dpkg has noted as installed, each by its package URL, under which advisories of Debian name it.
Needs cyclonedx-bom, which the extra ``dev`` brings.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

#: Where the image has its environment.
ENVIRONMENT = Path("opt/placer")


def main() -> int:
    """Write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", metavar="ROOT", type=Path, help="the root file system of an image")
    parser.add_argument("-o", metavar="FILE", type=Path, required=True, help="where the document goes")
    asked = parser.parse_args()
    found = sorted((asked.root / ENVIRONMENT).glob("lib/python3*/site-packages"))
    if len(found) != 1:
        parser.error(f"ROOT: found {len(found)} folders {ENVIRONMENT}/lib/python3*/site-packages, expected one")
    with tempfile.TemporaryDirectory() as folder:
        # It asks an interpreter for nothing but its path; that of the image may not run here.
        stand_in = Path(folder, "python")
        program = f"import json; print(json.dumps([{str(found[0].absolute())!r}]))"
        stand_in.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, '-c', program])}\n", encoding="utf-8")
        stand_in.chmod(0o755)
        command = [sys.executable, "-m", "cyclonedx_py", "environment", str(stand_in)]
        command += ["--output-reproducible", "--output-format", "JSON", "--output-file", str(asked.o)]
        code = subprocess.run(command, check=False).returncode
    if code == 0:
        document = json.loads(asked.o.read_text(encoding="utf-8"))
        document["components"] = [*document.get("components", ()), *of_base(asked.root)]
        document["metadata"]["component"] = _image(document["components"])
        asked.o.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return code


def of_base(root: Path) -> Iterator[dict[str, Any]]:
    """What the base of the image holds: Python, the operating system, its packages."""
    settings = _settings(root / ENVIRONMENT / "pyvenv.cfg", " = ")
    yield {"type": "platform", "bom-ref": "python", "name": "python", "version": settings["version"]}
    system = _settings(root / "etc" / "os-release", "=")
    named = {"type": "operating-system", "bom-ref": "system", "name": system["ID"]}
    yield named | {"version": system.get("VERSION_ID", "")}
    for package in _packages(root / "var" / "lib" / "dpkg"):
        yield _component(package, system)


def _image(components: list[dict[str, Any]]) -> dict[str, Any]:
    """The image itself, by the version of placer that it holds."""
    version = next(each["version"] for each in components if each["name"] == "kube-placer")
    return {"type": "container", "bom-ref": "image", "name": "placer", "version": version}


def _settings(path: Path, sign: str) -> dict[str, str]:
    lines = (line.partition(sign) for line in path.read_text(encoding="utf-8").splitlines())
    return {key.strip(): value.strip().strip('"') for key, found, value in lines if found}


def _packages(dpkg: Path) -> Iterator[dict[str, str]]:
    """The fields of each installed package; images without a package manager have a file for each."""
    files = [dpkg / "status", *sorted((dpkg / "status.d").glob("*"))]
    for path in (each for each in files if each.is_file() and not each.name.endswith(".md5sums")):
        for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
            lines = (line.partition(": ") for line in paragraph.splitlines() if not line.startswith(" "))
            fields = {key: value for key, _, value in lines}
            if "Package" in fields and fields.get("Status", "install ok installed").endswith(" installed"):
                yield fields


def _component(package: dict[str, str], system: dict[str, str]) -> dict[str, Any]:
    name, version, architecture = package["Package"], package["Version"], package.get("Architecture", "all")
    release = f"{system['ID']}-{system.get('VERSION_ID', '')}".rstrip("-")
    purl = f"pkg:deb/{system['ID']}/{quote(name)}@{quote(version)}?arch={architecture}&distro={release}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


if __name__ == "__main__":
    sys.exit(main())
