"""The machine of a run: processor, cores, system, interpreter, and the revision of placer's sources."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from placer.base import version
from placer.base.cores import usable_cores

__all__ = ["Machine", "this_machine"]


class Machine(BaseModel):
    """The machine that seconds and MiB of a run depend on.

    Parameters
    ----------
    revision
        First twelve digits of the commit of placer's sources, ``+`` behind them where files differ from it.
    """

    model_config = ConfigDict(frozen=True)

    processor: str
    cores: int
    system: str
    python: str
    revision: str | None


def this_machine() -> Machine:
    """Look at the machine that this process runs on."""
    return Machine(
        processor=_processor(),
        cores=usable_cores(),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        revision=_revision(Path(version.__file__).parents[1]),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    told = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(told, "") or platform.processor() or platform.machine()


def _revision(sources: Path) -> str | None:
    """None for an installed package, though a folder above it may be a checkout."""
    if not (sources / ".git").exists():
        return None
    command = ["git", "-C", str(sources), "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
