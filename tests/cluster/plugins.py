"""A plug-in of a kubeconfig in tests: a program that says who we are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["EXEC", "FUTURE", "PAST", "Plugin"]

#: Of the format in which plug-ins are asked and answer.
EXEC = "client.authentication.k8s.io/v1"
PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


class Plugin:
    """Prints what it is told to, and notes what it is told at each call."""

    def __init__(self, folder: Path) -> None:
        self.prints, self.calls = folder / "prints", folder / "calls"
        self._script = folder / "plugin.py"
        self._program = (
            "import os, pathlib, sys\n"
            f"with open({str(self.calls)!r}, 'a') as calls:\n"
            "    calls.write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
            f"sys.stdout.write(pathlib.Path({str(self.prints)!r}).read_text())\n"
        )

    def gives(self, token: str, expires: str | None = None, **more: Any) -> None:
        """Have it give a token."""
        status = {"token": token, **more} | ({"expirationTimestamp": expires} if expires else {})
        self.says(json.dumps({"apiVersion": EXEC, "kind": "ExecCredential", "status": status}))

    def says(self, text: str) -> None:
        """Have it print something."""
        self.prints.write_text(text)
        self._script.write_text(self._program)

    def fails(self, said: str) -> None:
        """Have it say something and end with 1."""
        self._script.write_text(f"import sys\nsys.exit({said!r})\n")

    @property
    def called(self) -> int:
        """How often it was asked when it did not fail."""
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0

    @property
    def user(self) -> dict[str, Any]:
        """What stands in a kubeconfig for a user who has it."""
        return {"exec": {"apiVersion": EXEC, "command": sys.executable, "args": [str(self._script)]}}
