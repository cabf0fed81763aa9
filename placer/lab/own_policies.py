"""Policies of the reader's own: ``NAME=package.module:function``, or ``NAME=FILE`` with a Placement or v1 Bindings.

A module is looked for last in the directory of the call, so that no file there hides a library. A sweep runs again a
policy whose digest has changed.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from placer.answers.document import PlacementDocument, stated_bounds, stated_weight_bound, statement
from placer.base.errors import BadInstance, Fault, StrictFindings, UsageError, finding_text
from placer.base.text import shown
from placer.problem import Finding, Instance, Key
from placer.problem.placement import Binding, Placement
from placer.problem.reading import read_whole_placement
from placer.problem.result import Bound
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.process import ProcessEnd, run_apart

__all__ = ["OwnFunction", "OwnPolicy", "PolicyFunction", "Proposal", "load", "parse", "placement_from", "propose"]


class PolicyFunction(Protocol):
    """A function that is a policy (models/policies.md): it gets a copy of the instance and says where pending pods go.

    Parameters of these names get keywords: ``seed`` (0 .. 2^31 - 1), ``time_limit`` (seconds left; None: no limit;
    nothing cuts a function off) and ``workers`` (cores; None: all). Other parameters need defaults.
    """

    def __call__(self, instance: Instance) -> Placement | Mapping[Key, str] | Mapping[str, str]:
        """Pod to name of its node, in the order of the bindings; other pods stay pending.

        A pod is its key (``pod.key``, or any pair of namespace and name), or ``"namespace/name"``.
        """
        ...


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """``folder`` is the absolute directory of the call. ``digest`` is the SHA-256 of its name, its module's source, and
    the sources next to or below it that this imports.
    """

    target: str
    folder: str
    digest: str


@dataclass(frozen=True, slots=True)
class OwnPlacement:
    """``stated`` is the Placement document, None where the file has only bindings; ``findings`` are content that is not
    judged.
    """

    file: str
    placement: Placement
    stated: PlacementDocument | None
    findings: tuple[Finding, ...]
    strict: bool
    digest: str


OwnPolicy = OwnFunction | OwnPlacement


@dataclass(frozen=True, slots=True)
class Proposal:
    """The bindings of a policy or method, not judged, in their order; they may break rules.

    Parameters
    ----------
    bounds
        One per value of the objective, proved, or stated by a file; else empty.
    weight_bound
        No valid placement that is at least as good in the order of the objective weighs more.
    seconds, peak_memory
        From having the instance; KiB, 0: not known.
    """

    placement: Placement
    notes: tuple[str, ...] = ()
    bounds: tuple[Bound | None, ...] = ()
    weight_bound: Bound | None = None
    seconds: float = 0.0
    peak_memory: int = 0


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FUNCTION = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")
_EXPECTED = "package.module:function, or the file of a Placement or of v1 Bindings"


def parse(words: Iterable[str], known: Sequence[str]) -> tuple[dict[str, str | None], list[str]]:
    """Separate the reader's own policies from names.

    Parameters
    ----------
    known
        Names that are taken.

    Returns
    -------
    dict, list of str
        Each name once, with the target of the reader's own (None of any other); and every fault.

    Examples
    --------
    >>> parse(["greedy", "mine=fits:first_fit"], ["greedy"])
    ({'greedy': None, 'mine': 'fits:first_fit'}, [])
    >>> parse(["greedy=fits:first_fit"], ["greedy"])[1]
    ["policy 'greedy=fits:first_fit': found a name that placer has a policy of, expected another one"]
    """
    found: dict[str, str | None] = {}
    faults: list[str] = []
    for word in words:
        name, own, target = word.partition("=")
        if own:
            faults += [f"policy {word!r}: {fault}" for fault in _faults(name, target, known)]
        if own and found.get(name, target) != target:
            faults.append(f"policy {word!r}: found {name}={found[name]}, too, expected one meaning of {name}")
        found.setdefault(name, target if own else None)
    return found, faults


def _faults(name: str, target: str, known: Sequence[str]) -> Iterable[str]:
    if not _NAME.fullmatch(name):
        yield f"found the name {name!r}, expected letters, digits, '.', '_' and '-', a letter or digit first"
    if name in known:
        yield "found a name that placer has a policy of, expected another one"
    if not target or target == "-":
        yield f"found {'standard input' if target else 'nothing'} behind the name, expected {_EXPECTED}"
    elif not Path(target).is_file() and not _FUNCTION.fullmatch(target):
        found = "a folder" if Path(target).is_dir() else "no file of that name"
        yield f"found {found}, expected {_EXPECTED}"


def load(targets: Mapping[str, str | None], *, strict: bool = False) -> dict[str, OwnPolicy]:
    """Read the files and import the functions of :func:`parse`, each function in its own process.

    Raises
    ------
    UsageError
        Names every module that cannot be imported or lacks its function.
    BadInstance, StrictFindings
        A file holds no placement, or, if ``strict``, unknown keys.
    """
    own: dict[str, OwnPolicy] = {}
    faults: list[str] = []
    for name, target in targets.items():
        if target is None:
            continue
        if Path(target).is_file():
            own[name] = _read(target, strict=strict)
            continue
        folder = str(Path.cwd())
        digest, fault = _examined(target, folder)
        own[name] = OwnFunction(target, folder, digest)
        faults += [f"policy {name}: {fault}"] if fault else []
    if faults:
        raise UsageError("; ".join(faults))
    return own


def _read(file: str, *, strict: bool) -> OwnPlacement:
    from placer.kube.manifests import read_texts

    try:
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        raise BadInstance([Fault(file, None, "", "", error.strerror or str(error), "a file to read")]) from error
    (text,) = read_texts([file])
    if not bytes(text.data).strip():
        raise BadInstance([Fault(file, None, "", "", "nothing", "a Placement or v1 Bindings")])
    placement, unread = read_whole_placement(text, strict=strict)
    return OwnPlacement(file, placement, statement(text), unread.findings, strict, digest)


def _examined(target: str, folder: str) -> tuple[str, str]:
    ended = run_apart(f"{__name__}:examine", (target, folder), lambda _: None)
    if ended.how is ProcessEnd.INTERRUPTED:
        raise KeyboardInterrupt
    if ended.value is None:
        return "", f"the process that imported {target} ended with {ended.detail}"
    digest, fault = ended.value
    return digest, fault


def examine(target: str, folder: str, emit: Callable[[Any], None]) -> tuple[str, str]:  # noqa: ARG001  # nothing to tell
    try:
        function, digest = _imported(target, folder)
        _keywords(target, function, {})
    except UsageError as error:
        return "", str(error)
    return digest, ""


def _imported(target: str, folder: str) -> tuple[Callable[..., Any], str]:
    name, _, function = target.partition(":")
    # Bytecode goes by the second in which a source was written: one that was changed within it would not be noticed.
    sys.dont_write_bytecode = True
    sys.path.append(folder)
    before = set(sys.modules)
    try:
        module = importlib.import_module(name)
    except BaseException as error:  # the reader's code, which may raise anything, and exit
        raise UsageError(_not_imported(name, folder, error)) from error
    found = getattr(module, function, None)
    where = getattr(module, "__file__", None) or "built in"
    if found is None:
        raise UsageError(f"{target}: found no {function} in the module {name} ({where}), expected a function")
    if not callable(found):
        raise UsageError(f"{target}: found {_kind(found)} in {where}, expected a function")
    return found, _digest(function, module, before)


def _not_imported(name: str, folder: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        return f"module {name}: found no {error.name}, expected it to be installed, on PYTHONPATH or in {folder}"
    return f"module {name}: cannot be imported: {_told(error)}"


def _digest(function: str, module: ModuleType, before: set[str]) -> str:
    root = _root(module)
    files = {str(module.__file__)} if getattr(module, "__file__", None) else set[str]()
    if root is not None:
        new = (sys.modules[name] for name in set(sys.modules) - before)
        origins = (getattr(each, "__file__", None) for each in new)
        files |= {origin for origin in origins if origin is not None and Path(origin).is_relative_to(root)}
    digest = hashlib.sha256(function.encode())
    for file in sorted(files):
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return digest.hexdigest()


def _root(module: ModuleType) -> Path | None:
    """Folder of the reader's own sources; None for a module of a library, whose version says enough."""
    top = sys.modules[module.__name__.partition(".")[0]]
    file = getattr(top, "__file__", None) or getattr(module, "__file__", None)
    if file is None:
        return None
    root = Path(file).parent
    return None if root in _libraries() else root


def _libraries() -> set[Path]:
    return {Path(path) for name, path in sysconfig.get_paths().items() if name in ("stdlib", "purelib", "platlib")}


def _is_library(file: Path) -> bool:
    return any(file.is_relative_to(library) for library in _libraries())


#: What a function may ask for, as keywords.
GIVEN = ("seed", "time_limit", "workers")


def _keywords(target: str, function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in: it does not say
        return {}
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    asked = {each.name for each in list(signature.parameters.values())[1:] if each.kind in by_name}
    keywords = {name: given.get(name) for name in GIVEN if name in asked}
    try:
        signature.bind(None, **keywords)
    except TypeError as error:
        called = ", ".join(("instance", *keywords))
        expected = f"a function of the instance and, if wanted, {', '.join(GIVEN)}"
        raise UsageError(f"{target}: called with ({called}) found {error}, expected {expected}") from error
    return keywords


def propose(
    own: OwnPolicy,
    instance: Instance,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    workers: int | None = None,
    began: float | None = None,
) -> Proposal:
    """Ask a policy of the reader's own, in a process of its own: this imports the reader's module.

    The limit counts from ``began`` (``time.monotonic()``; None: now).

    Raises
    ------
    UsageError
        The function raises, has changed, or returns something else than pods and nodes of the instance.
    StrictFindings
        The placement was made for other input, and findings are errors.
    """
    if isinstance(own, OwnPlacement):
        return _of_file(own, instance)
    function, digest = _imported(own.target, own.folder)
    if digest != own.digest:
        raise UsageError(f"{own.target}: found other sources than when this began, expected the same")
    now = time.monotonic()
    left = None if time_limit is None else max(0.0, time_limit - now + (now if began is None else began))
    keywords = _keywords(own.target, function, {"seed": seed, "time_limit": left, "workers": workers})
    try:
        found = function(instance, **keywords)
    except BaseException as error:  # the reader's code, which may raise anything, and exit
        raise UsageError(f"{own.target}: {_told(error)}") from error
    return Proposal(placement_from(own.target, found, instance))


def _told(error: BaseException) -> str:
    """The message of an error of the reader's code, and the last line of that code that was reached."""
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and not frame.filename.startswith("<") and not _is_library(Path(frame.filename))
    ]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"found {type(error).__name__}: {shown(str(error), 300)}{where}, expected no error"


def placement_from(target: str, found: object, instance: Instance) -> Placement:
    """The result of a function as a placement; unknown pods and nodes are faults."""
    entries = _entries(found)
    if entries is None:
        raise UsageError(f"{target}: returned {_kind(found)}, expected a Placement or a mapping of pods to nodes")
    wrong = [fault for pod, node, _ in entries for fault in _wrong(pod, node, instance)]
    if wrong:
        more = f"; and {len(wrong) - _TOLD:,} more" if len(wrong) > _TOLD else ""
        raise UsageError(f"{target}: returned {'; '.join(wrong[:_TOLD])}{more}")
    bindings = tuple(Binding(Key(*_pair(pod)), node, zones) for pod, node, zones in entries)
    return Placement(bindings, found.one_by_one if isinstance(found, Placement) else ())


def _entries(found: object) -> list[tuple[Any, Any, tuple[str, ...]]] | None:
    if isinstance(found, Mapping):
        return [(pod, node, ()) for pod, node in found.items()]
    if not isinstance(found, Placement):
        return None
    bindings = (each if isinstance(each, Binding) else Binding(each, "") for each in found.bindings)
    return [(each.pod, each.node, each.numa_zones) for each in bindings]


#: Names that a function returned and the instance does not have: so many are told.
_TOLD = 5


def _pair(pod: object) -> tuple[str, str]:
    if isinstance(pod, str):
        namespace, slash, name = pod.partition("/")
        return (namespace, name) if slash else ("", "")
    if isinstance(pod, tuple) and len(pod) == 2 and all(isinstance(part, str) for part in pod):
        return pod
    return "", ""


def _wrong(pod: object, node: object, instance: Instance) -> Iterable[str]:
    """That a pod does not wait is for verify to say (C1)."""
    if Key(*_pair(pod)) not in instance.pods:
        expected = 'the key of a pod (pod.key, or "namespace/name")' if _pair(pod) == ("", "") else "one of its pods"
        yield f"{_value(pod)} for a pod, expected {expected}"
    if not isinstance(node, str) or node not in instance.nodes:
        yield f"{_value(node)} for a node, expected the name of one of its nodes"


def _value(value: object) -> str:
    return shown(str(value) if isinstance(value, Key) else repr(value), 60)


def _kind(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


#: How a bound is told apart that a file states from one that was proved in this call.
STATED = "stated in"

_OTHER_INPUT = "the Placement was made for other input than this; its bounds are left out"


def _of_file(own: OwnPlacement, instance: Instance) -> Proposal:
    """Without stated bounds if the placement breaks a rule or the input differs."""
    said, findings = own.stated, list(own.findings)
    if said is not None and said.instance.sha256 != instance.digest:
        findings.append(Finding("PlacementOfOtherInput", own.file, f"{own.file}: {_OTHER_INPUT}"))
        said = None
    if findings and own.strict:
        faults = [Fault(own.file, None, each.object, each.code, each.message, "no finding") for each in findings]
        raise StrictFindings(faults)
    notes = tuple(finding_text(each.code, each.object, each.message) for each in findings)
    if said is None or verify(instance, own.placement):
        return Proposal(own.placement, notes)
    bounds = tuple(_stated(bound, own.file) for bound in stated_bounds(said, score(instance, own.placement)))
    return Proposal(own.placement, notes, bounds, _stated(stated_weight_bound(said), own.file))


def _stated(bound: Bound | None, file: str) -> Bound | None:
    return None if bound is None else Bound(bound.value, f"{bound.by} ({STATED} {file})")
