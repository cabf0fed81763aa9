"""``deploy/Dockerfile`` and what it installs: pinned, locked, nobody's rights."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import placer
from tests.test_deploy import DEPLOY, container, template


def dockerfile() -> list[str]:
    """Instructions, comments and line breaks apart."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def image_user() -> int:
    (user,) = (line.removeprefix("USER ").partition(":")[0] for line in dockerfile() if line.startswith("USER "))
    return int(user)


def images() -> Iterable[str]:
    stages, given = set(), dict[str, str]()
    for line in dockerfile():
        if line.startswith("ARG "):
            name, _, value = line.removeprefix("ARG ").partition("=")
            given[f"${{{name}}}"] = value
        if line.startswith("FROM "):
            _, written, *rest = line.split()
            image = given.get(written, written)
            if image not in stages:
                yield image
            stages |= set(rest[1:])
    yield container()["image"]


@pytest.mark.parametrize("image", sorted(set(images())))
def test_every_image_is_pinned(image: str) -> None:
    """By a digest, or by a tag with a whole version."""
    assert re.search(r"@sha256:[0-9a-f]{64}$|:v?\d+\.\d+\.\d+([-.][-.a-z0-9]+)?$", image)


def test_the_image_is_of_this_version() -> None:
    assert container()["image"] == f"placer:{placer.__version__}"


def test_the_image_runs_as_nobody() -> None:
    assert image_user() == template()["securityContext"]["runAsUser"] > 0
    last = max(number for number, line in enumerate(dockerfile()) if line.startswith("FROM "))
    assert any(line.startswith("USER ") for line in dockerfile()[last:])


def test_pip_takes_locked_wheels_only() -> None:
    text = " ".join(dockerfile())
    assert "PIP_REQUIRE_HASHES=1" in text
    assert "PIP_ONLY_BINARY=:all:" in text
    for command in re.findall(r"pip (?:install|wheel) [^&]+", text):
        locked = re.search(r"--requirement /locks/(build|requirements)\.lock", command)
        assert locked or "--no-deps" in command, command


def test_what_is_sent_to_the_builder_is_what_is_copied() -> None:
    sent = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for line in dockerfile()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert sent == copied
    assert all((DEPLOY.parent / each).exists() for each in copied)


def locked(name: str) -> dict[str, str]:
    """Project to version; every line has a check sum."""
    text = (DEPLOY / name).read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            pin, *sums = line.split()
            assert sums
            assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in sums), line
            project, _, version = pin.partition("==")
            found[str(canonicalize_name(project))] = version
    return found


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_a_lock_has_one_wheel_for_all_or_one_for_each_architecture(name: str) -> None:
    """amd64 and arm64; what is compiled has two."""
    text = (DEPLOY / name).read_text()
    assert "x86_64, aarch64" in text.partition("\n")[0]
    sums = {each.split("==")[0]: each.count("--hash=sha256:") for each in re.split(r"\n(?=\S)", text) if "==" in each}
    assert set(sums.values()) <= {1, 2}
    if name == "requirements.lock":
        assert {each: sums[each] for each in ("ortools", "highspy", "msgspec", "numpy", "pulp")} == {
            "ortools": 2,
            "highspy": 2,
            "msgspec": 2,
            "numpy": 2,
            "pulp": 1,
        }


def test_the_base_is_the_same_in_both_stages_and_of_the_python_of_the_locks() -> None:
    """By its digest; it is an argument, so that a release can give a newer one."""
    assert [line.split()[1] for line in dockerfile() if line.startswith("FROM ")] == ["${BASE}"] * 2
    version = re.fullmatch(r"ARG BASE=python:(\d+\.\d+)\.\d+-slim-\w+@sha256:[0-9a-f]{64}", dockerfile()[0])
    assert version is not None
    assert f"for Python {version[1]} on Linux" in (DEPLOY / "requirements.lock").read_text()


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_the_locks_keep_to_what_the_project_asks(name: str) -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    asked = {
        "requirements.lock": [
            *project["project"]["dependencies"],
            *project["project"]["optional-dependencies"]["cluster"],
        ],
        "build.lock": project["build-system"]["requires"],
    }[name]
    versions = locked(name)
    for each in map(Requirement, asked):
        assert versions[str(canonicalize_name(each.name))] in each.specifier, each
