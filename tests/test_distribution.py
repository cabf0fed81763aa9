"""What the distribution is called, and that whoever is told to install something gets this and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from placer.base.errors import UsageError
from placer.base.extras import DISTRIBUTION, how_to_install
from placer.passes.cluster.reading.client import Client

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Files that say how to install something.
TEXTS = [
    *ROOT.glob("*.md"),
    *(path for folder in ("placer", "deploy", "models", "instances", ".ci") for path in (ROOT / folder).rglob("*")),
]


def test_the_package_and_the_command_are_placer_and_the_distribution_is_not() -> None:
    assert PROJECT["name"] == DISTRIBUTION != "placer"
    assert PROJECT["scripts"] == {"placer": "placer.cli:main", "kubectl-placer": "placer.cli:plugin"}


def test_nothing_tells_people_to_install_another_project() -> None:
    """``placer`` on PyPI is not this one."""
    seen = 0
    for path in TEXTS:
        if path.is_file() and path.suffix in ("", ".md", ".py", ".yaml", ".toml"):
            text = path.read_text(encoding="utf-8")
            seen += text.count("pip install")
            assert not re.search(r"pip install (-\S+ )*['\"]?placer\b|(?<!-)\bplacer\[\w", text), path
    assert seen > 5


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_an_extra_is_installed_from_the_sources_or_from_git(extra: str) -> None:
    said = how_to_install(extra)
    assert f"pip install '.[{extra}]'" in said
    assert f"pip install '{DISTRIBUTION}[{extra}] @ git+https://" in said


def test_every_extra_that_is_named_is_there() -> None:
    named = [
        match
        for path in (*(ROOT / "placer").rglob("*.py"), ROOT / "README.md")
        for match in re.findall(r"how_to_install\(['\"](\w+)['\"]\)|'\.\[([\w,]+)\]'", path.read_text(encoding="utf-8"))
    ]
    extras = {extra for match in named for extra in "".join(match).split(",")}
    assert extras >= {"cluster", "dask", "dev"}
    assert extras <= PROJECT["optional-dependencies"].keys()


def test_without_the_library_of_a_cluster_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(UsageError, match=r"^a cluster needs the library kubernetes: pip install '\.\[cluster\]' in "):
        Client.connect()


def test_the_readme_says_the_name() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"`{DISTRIBUTION}`" in text
    assert f"'{DISTRIBUTION}[cluster] @ git+https://" in text
    done = subprocess.run([sys.executable, "-m", "placer.cli", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("placer ")
