"""The structure of the package in figures: ``python -m tests.structure`` prints them, ``--json`` to compare two.

What each figure counts:

lines, files
    Of Python files below ``placer/``; without ``lab`` is what decides, judges, binds and prints.
classes, docstring words
    Class statements, and words of all docstrings.
entries
    Directly below ``placer/``, without ``__init__`` and ``__main__``.
shared method names
    Names that four and more public methods have in ``search``, ``arrays`` and ``bounds``.
import chain
    The longest way along imports, in modules. ``from package import name`` leads to the package's ``__init__``, and to
    the submodule where ``name`` is one; imports inside functions count, those under ``TYPE_CHECKING`` do not, because
    they never happen. Modules that import each other in a circle count as one.
import circles
    Sets of modules that import each other, imports under ``TYPE_CHECKING`` included.
class names used twice
    Names that more than one class statement has, leading underscores dropped.
complex functions
    Functions and methods, inner ones included, of a cyclomatic complexity (McCabe, as radon counts it) above 10.
public names
    Per package, the names in ``__all__`` of its ``__init__``.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx

ROOT = Path(__file__).parent.parent / "placer"

#: Cyclomatic complexity from which on a function is hard to follow (radon's grade C begins behind it).
COMPLEX = 10


@dataclass(frozen=True)
class Structure:
    """The figures; see the module's docstring."""

    files: int
    lines: int
    lines_without_lab: int
    classes: int
    docstring_words: int
    entries: int
    shared_methods: dict[str, int]
    import_chain: tuple[str, ...]
    import_circles: tuple[tuple[str, ...], ...]
    repeated_classes: dict[str, tuple[str, ...]]
    complex_functions: dict[str, int]
    public_names: dict[str, int]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def modules() -> dict[str, Path]:
    """Module name, ``placer`` included, to its file."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported(node: ast.AST, *, for_types: bool) -> Iterator[str]:
    """Modules of ours that a piece of code imports."""
    if is_type_checking(node) and not for_types:
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules())
    elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module in modules():
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield name if name in modules() else node.module
    for child in ast.iter_child_nodes(node):
        yield from imported(child, for_types=for_types)


def import_graph(*, for_types: bool) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in modules().items():
        graph.add_node(name)
        graph.add_edges_from((name, other) for other in imported(tree_of(path), for_types=for_types) if other != name)
    return graph


def import_circles() -> tuple[tuple[str, ...], ...]:
    graph = import_graph(for_types=True)
    return tuple(sorted(tuple(sorted(each)) for each in nx.strongly_connected_components(graph) if len(each) > 1))


def import_chain() -> tuple[str, ...]:
    condensed = nx.condensation(import_graph(for_types=False))
    return tuple(min(condensed.nodes[each]["members"]) for each in nx.dag_longest_path(condensed))


def repeated_classes() -> dict[str, tuple[str, ...]]:
    found = defaultdict(list)
    for module, path in modules().items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(f"{module}.{node.name}")
    return {name: tuple(places) for name, places in sorted(found.items()) if len(places) > 1}


def complex_functions() -> dict[str, int]:
    from radon.complexity import ComplexityVisitor
    from radon.visitors import Function

    def visit(block: object) -> Iterator[Function]:
        if isinstance(block, Function):
            yield block
        for inner in (*getattr(block, "methods", ()), *getattr(block, "closures", ())):
            yield from visit(inner)

    found = {}
    for module, path in modules().items():
        for block in ComplexityVisitor.from_code(path.read_text()).blocks:
            for function in visit(block):
                if function.complexity > COMPLEX:
                    found[f"{module}:{function.lineno} {function.name}"] = function.complexity
    return found


def public_names() -> dict[str, int]:
    found = {}
    for module, path in modules().items():
        if path.name == "__init__.py":
            for node in tree_of(path).body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                    found[module] = len(ast.literal_eval(node.value))
    return found


def nodes_of(kinds: type[ast.AST] | tuple[type[ast.AST], ...], *rooms: str) -> Iterator[Any]:
    """Nodes of the trees of some rooms; without names of all."""
    for path in modules().values():
        if not rooms or path.relative_to(ROOT).parts[0] in rooms:
            yield from (node for node in ast.walk(tree_of(path)) if isinstance(node, kinds))


def docstring_words() -> int:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return sum(len((ast.get_docstring(node) or "").split()) for node in nodes_of(documented))


def shared_methods() -> dict[str, int]:
    methods = (
        each.name
        for node in nodes_of(ast.ClassDef, "search", "arrays", "bounds")
        for each in node.body
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
    )
    return {name: count for name, count in Counter(methods).items() if count > 3}


def lines_of(*without: str) -> int:
    paths = (path for path in modules().values() if path.relative_to(ROOT).parts[0] not in without)
    return sum(len(path.read_text().splitlines()) for path in paths)


def measure() -> Structure:
    return Structure(
        files=len(modules()),
        lines=lines_of(),
        lines_without_lab=lines_of("lab"),
        classes=sum(1 for _ in nodes_of(ast.ClassDef)),
        docstring_words=docstring_words(),
        entries=sum(path.suffix in ("", ".py") and path.stem.strip("_") == path.stem for path in ROOT.iterdir()),
        shared_methods=shared_methods(),
        import_chain=import_chain(),
        import_circles=import_circles(),
        repeated_classes=repeated_classes(),
        complex_functions=complex_functions(),
        public_names=public_names(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the structure of the package.")
    parser.add_argument("--json", action="store_true", help="all of it, machine-readable")
    parser.add_argument("--verbose", action="store_true", help="also what each figure is made of")
    options = parser.parse_args()
    found = measure()
    if options.json:
        print(json.dumps(asdict(found), indent=2))
        return
    rooms = Counter(name.split(".")[1] for name in found.complex_functions if "." in name.split(":")[0])
    print(f"files                        {found.files:7,}")
    print(f"lines                        {found.lines:7,}")
    print(f"lines without lab            {found.lines_without_lab:7,}")
    print(f"classes                      {found.classes:7,}")
    print(f"docstring words              {found.docstring_words:7,}")
    print(f"entries                      {found.entries:7,}")
    print(f"shared method names          {len(found.shared_methods):7,}")
    print(f"import chain                 {len(found.import_chain):7,}")
    print(f"import circles               {len(found.import_circles):7,}")
    print(f"class names used twice       {len(found.repeated_classes):7,}")
    print(f"functions above complexity {COMPLEX} {len(found.complex_functions):6,}")
    print(f"most public names            {max(found.public_names.values(), default=0):7,}")
    if options.verbose:
        print("\nimport chain:\n  " + "\n  ".join(found.import_chain))
        print("\nimport circles:", *(" <-> ".join(each) for each in found.import_circles), sep="\n  ")
        print("\nclass names used twice:")
        for name, places in found.repeated_classes.items():
            print(f"  {name}: {', '.join(places)}")
        print("\ncomplex functions by room:", dict(rooms.most_common()))
        for name, complexity in sorted(found.complex_functions.items(), key=lambda item: -item[1]):
            print(f"  {complexity:3} {name}")
        print("\nshared method names:", found.shared_methods)
        print("\npublic names:", found.public_names)


if __name__ == "__main__":
    main()
