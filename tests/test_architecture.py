"""The walls of the house: every import points downward, and third-party libraries stay in their room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests import structure

ROOT = Path(__file__).parent.parent / "placer"

#: Layers, lowest first; a module imports only from its own room and from rows above it in this list.
LAYERS = [
    ["base"],
    ["kube"],
    ["problem"],
    ["rules"],
    ["arrays"],
    ["bounds"],
    ["search"],
    ["answers"],
    ["topology"],
    ["passes"],
    ["lab"],
    ["cli"],
    ["api"],
    ["model", "__main__"],
    ["schemas"],
]

#: The package's front door: re-exports what notebooks use, and is asked only for ``__version__`` from inside.
FRONT_DOOR = "__init__"

#: Third-party library -> the modules (prefixes) that may import it.
ROOMS = {
    "numpy": ("arrays", "bounds", "search", "answers.reasons", "kube.manifests", "lab"),
    "ortools": ("base.linear", "search.exact", "search.decomposed"),
    "pulp": ("search.milp",),
    "highspy": ("search.milp", "base.linear"),
    "networkx": ("problem", "topology.discovery", "passes.cluster.planning"),
    "pydantic": ("lab.sweep",),
    "pydantic_core": ("kube.reader", "kube.manifests.faults"),
    "msgspec": ("kube", "problem", "passes", "answers.document", "answers.report", "lab.sweep"),
    "re2": ("problem", "kube"),
    "yaml": ("kube.manifests", "passes.cluster.reading.credentials"),
    "kubernetes": ("passes.cluster.reading.credentials",),
    "urllib3": ("passes.cluster.reading.client", "passes.cluster.reading.credentials"),
    "distributed": ("base.executors",),
    "argcomplete": ("cli.completing",),
    "matplotlib": ("lab.figures.drawing",),
    "pandas": ("lab.figures", "lab.sweep.statistics"),
    "scipy": ("lab.sweep.statistics",),
    "rich": ("answers.summary", "answers.progress", "base.table", "cli"),
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every absolute import of a file, also those inside functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield node.lineno, node.module or ""


def layer(module: str) -> int:
    room = module.split(".")[0]
    return next(index for index, row in enumerate(LAYERS) if room in row)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_point_downward(path: Path) -> None:
    module = name_of(path)
    if module == FRONT_DOOR:
        return
    for line, target in imports(path):
        if target == "placer" or not target.startswith("placer."):
            continue
        inner = target.removeprefix("placer.")
        same_room = inner.split(".")[0] == module.split(".")[0]
        assert same_room or layer(inner) < layer(module), f"{module} (line {line}) must not import {inner}"


def test_only_the_front_doors_import_the_laboratory() -> None:
    """What decides, judges and binds does without instances from a seed and other schedulers' policies."""
    outside = [path for path in modules() if name_of(path).split(".")[0] not in ("lab", "api", "cli")]
    found = [name_of(path) for path in outside for _, target in imports(path) if "placer.lab" in target]
    assert len(outside) > 100
    assert not found


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_libraries_stay_in_their_room(path: Path) -> None:
    module = name_of(path)
    for line, target in imports(path):
        allowed = ROOMS.get(target.split(".")[0])
        if allowed is not None:
            fits = any(module == room or module.startswith(room + ".") for room in allowed)
            assert fits, f"{module} (line {line}) must not import {target}: only {', '.join(allowed)} may"


def test_the_cluster_is_read_then_planned_for_then_written_to() -> None:
    """Imports point from writing to planning to reading, and planning makes no request."""
    parts = ["reading", "planning", "writing"]
    for level, part in enumerate(parts):
        for path in (ROOT / "passes" / "cluster" / part).glob("*.py"):
            for line, target in imports(path):
                above = target.split(".")[3] if target.startswith("placer.passes.cluster.") else part
                assert parts.index(above) <= level, f"{path} (line {line}) must not import {target}"
                assert part != "planning" or target != "placer.passes.cluster.reading.client", f"{path} (line {line})"


def test_every_module_has_a_layer() -> None:
    for path in modules():
        if name_of(path) != FRONT_DOOR:
            layer(name_of(path))


def test_the_structure_stays_simple() -> None:
    """Limits that only ever go down; ``python -m tests.structure --verbose`` says what each figure is made of."""
    found = structure.measure()
    assert len(found.import_chain) <= 24, " -> ".join(found.import_chain)
    assert not found.import_circles, found.import_circles
    assert not found.repeated_classes, found.repeated_classes
    assert len(found.complex_functions) <= 5, found.complex_functions
    assert found.lines_without_lab <= 75_450
    assert found.classes <= 926
    assert found.docstring_words <= 75_800
    assert found.entries <= 15
    assert len(found.shared_methods) <= 10, found.shared_methods
    crowded = {package: count for package, count in found.public_names.items() if count > 29}
    assert not crowded, f"too many public names: {crowded}"


def test_the_judges_see_no_solver_and_no_arrays() -> None:
    """What verify and score import, directly or not, never reaches numpy or a solver."""
    seen: set[str] = set()
    queue = ["rules", "rules.scoring"]
    while queue:
        module = queue.pop()
        if module in seen:
            continue
        seen.add(module)
        path = ROOT / (module.replace(".", "/") + ".py")
        path = path if path.exists() else ROOT / module.replace(".", "/") / "__init__.py"
        for line, target in imports(path):
            assert target.split(".")[0] not in ("numpy", "ortools", "pulp", "highspy"), (
                f"{module} (line {line}): {target}"
            )
            if target.startswith("placer."):
                queue.append(target.removeprefix("placer."))
    assert {"rules", "rules.scoring", "problem.outcome", "problem.placement"} <= seen


def packages() -> list[list[str]]:
    """Rows of the table of packages in CONTRIBUTING, as names of modules."""
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text[text.index("| package | content |") :].split("\n\n")[0].splitlines()[2:]
    cells = [re.split(r"(?<!\\)\|", line)[1] for line in table]
    return [[name.removeprefix("placer/").strip("/") for name in re.findall(r"`([^`]+)`", cell)] for cell in cells]


def test_the_table_of_packages_is_complete() -> None:
    there = {path.name for path in ROOT.iterdir() if path.suffix != ".typed"}
    named = [name for row in packages() for name in row]
    there -= {"__init__.py", "__pycache__"}
    assert len(named) == len(set(named))
    assert set(named) == there, "CONTRIBUTING.md, table of packages: what is directly under placer/, and nothing else"


@pytest.mark.parametrize("path", sorted(ROOT.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_a_package_that_lists_its_modules_lists_them_all(path: Path) -> None:
    there = {each.stem for each in path.parent.glob("*.py") if not each.stem.startswith("__")}
    words = set(re.findall(r"\w+", ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""))
    assert len(there & words) * 2 <= len(there) or there <= words, f"not named: {sorted(there - words)}"


def test_the_readmes_table_of_packages_is_in_the_order_of_the_layers() -> None:
    levels = [[layer(name.removesuffix(".py")) for name in row] for row in packages()]
    for above, below in pairwise(levels):
        assert max(above) <= min(below), f"{above} does not stand above {below}"
