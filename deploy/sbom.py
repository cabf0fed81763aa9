"""Writes what an image holds of Python as a CycloneDX document: each distribution with version, licence and sources.

``python deploy/sbom.py ROOT -o sbom.json`` reads the root file system of an image, unpacked or mounted
(``buildah mount``, ``docker export``); nothing of it is run, so the image may be of another architecture. Packages of
the base's distribution are its own business: its maker publishes what it holds.
Needs cyclonedx-bom, which the extra ``dev`` brings.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

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
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
