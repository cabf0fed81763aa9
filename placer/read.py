"""From files to an instance, and anybody's placement from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.errors import BadInstance, Fault, StrictFindings
from placer.instance import Finding, Instance, Key
from placer.placement import Binding, Placement

if TYPE_CHECKING:
    from placer.manifests import Objects, RawObject

__all__ = ["read", "read_expansion", "read_placement"]


def read(
    *paths: str | Path,
    scheduler_name: str | None = None,
    strict: bool = False,
    with_: Sequence[str | Path] = (),
    without: Sequence[str] = (),
    set_: Sequence[str] = (),
) -> Instance:
    """Read an instance.

    Parameters
    ----------
    paths
        Files, folders (searched recursively) and ``-`` for standard input: Kubernetes objects in YAML or JSON, gzipped
        or not. All of them together are one instance.
    scheduler_name
        Whose pending pods are ours, ``*``: any; None: any, or of a cluster's snapshot those that it was taken for.
    strict
        Findings are errors.
    with_, without, set_
        What if: objects added, removed, changed (models/interface.md).

    Returns
    -------
    Instance
        Immutable; its ``findings`` say what in the input cannot be as meant. Of a cluster's snapshot (``placer
        snapshot``) the pods are those that exist: only workloads that ``with_`` adds are expanded.

    Raises
    ------
    BadInstance
        Every fault of every file, with object, field, what was found and what was expected.
    StrictFindings
        There are findings, and ``strict`` was asked for.
    UsageError
        An edit names what is not there.
    """
    from placer.instance.build import build
    from placer.manifests import load

    objects: Objects = load(paths, with_=with_, without=without, set_=set_)
    of_cluster = objects.snapshot is not None
    instance = build(objects, scheduler_name=scheduler_name or objects.snapshot, cluster=of_cluster)
    _refuse_findings(paths, instance.findings, strict)
    return instance


def read_expansion(
    paths: Sequence[str | Path], *, strict: bool = False
) -> tuple[list[dict[str, Any]], tuple[Finding, ...]]:
    """Read workloads and make the PodGroups and Pods that their controllers would make.

    Returns
    -------
    documents, findings
        Whole Kubernetes objects, PodGroups first; and what in the workloads cannot be as meant.

    Raises
    ------
    BadInstance, StrictFindings
        As :func:`read`.
    """
    from placer.instance.expand import documents, expand
    from placer.instance.findings import Findings
    from placer.instance.ignored import note_ignored
    from placer.manifests import load

    objects = load(paths)
    noted = Findings()
    noted.update(expand(objects).findings)
    note_ignored(objects, noted)
    findings = noted.all()
    _refuse_findings(paths, findings, strict)
    return list(documents(objects)), findings


def _refuse_findings(paths: Sequence[str | Path], findings: Sequence[Finding], strict: bool) -> None:
    if strict and findings:
        name = ", ".join(map(str, paths))
        raise StrictFindings(
            [Fault(name, None, f.object, f.code, f.message, "no finding (--strict)") for f in findings]
        )


def read_placement(path: str | Path) -> Placement:
    """Read a placement: a Placement of placer, v1 Bindings, or a List of them.

    Parameters
    ----------
    path
        A file or ``-``.

    Raises
    ------
    BadInstance
        The file does not parse, or holds something else, or a binding lacks pod or node.
    """
    from placer.manifests import read_texts, split

    raws = split(read_texts([path]))
    faults: list[Fault] = []
    bindings: list[Binding] = []
    one_by_one: set[str] = set()
    others: list[RawObject] = []
    for raw in raws:
        if (raw.group, raw.kind) == ("placer.dev", "Placement"):
            bindings += _of_placement(raw, faults)
            one_by_one.update(_names(raw, _value(raw).get("oneByOne"), "oneByOne", faults))
        elif (raw.group, raw.kind) == ("", "Binding"):
            bindings += _of_binding(raw, faults)
        else:
            others.append(raw)
    if others:
        more = f" and {len(others) - 1:,} more objects" if len(others) > 1 else ""
        found = f"{others[0].label or 'no kind'}{more}"
        faults.append(_fault(others[0], "kind", found, "Placement (placer.dev/v1alpha1) or Binding (v1)"))
    if faults:
        raise BadInstance(faults)
    return Placement(tuple(bindings), tuple(sorted(one_by_one)))


def _of_placement(raw: RawObject, faults: list[Fault]) -> list[Binding]:
    entries = _value(raw).get("bindings")
    if not isinstance(entries, list):
        faults.append(_fault(raw, "bindings", _type(entries), "a list"))
        return []
    found: list[Binding] = []
    for index, entry in enumerate(entries):
        texts = [_text(raw, entry, f"bindings[{index}]", name, faults) for name in ("namespace", "pod", "node")]
        if None not in texts:
            namespace, pod, node = (text or "" for text in texts)
            zones = _names(raw, entry.get("numaZones"), f"bindings[{index}].numaZones", faults)
            found.append(Binding(Key(namespace, pod), node, zones))
    return found


def _of_binding(raw: RawObject, faults: list[Fault]) -> list[Binding]:
    value = _value(raw)
    node = _text(raw, value.get("target"), "target", "name", faults)
    pod = _text(raw, value.get("metadata"), "metadata", "name", faults)
    if node is None or pod is None:
        return []
    return [Binding(Key(raw.namespace or "default", pod), node)]


def _text(raw: RawObject, place: Any, path: str, name: str, faults: list[Fault]) -> str | None:
    value = place.get(name) if isinstance(place, Mapping) else None
    if isinstance(value, str) and value:
        return value
    faults.append(_fault(raw, f"{path}.{name}", _type(value), "a name"))
    return None


def _names(raw: RawObject, value: Any, path: str, faults: list[Fault]) -> tuple[str, ...]:
    """A list of names; left out, or null, it is empty."""
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(each, str) and each for each in value):
        return tuple(value)
    faults.append(_fault(raw, path, _type(value), "a list of names"))
    return ()


def _value(raw: RawObject) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(bytes(raw.text))
    return value


def _fault(raw: RawObject, field: str, found: str, expected: str) -> Fault:
    return Fault(raw.file, raw.document, raw.label, field, found, expected)


def _type(value: object) -> str:
    return "nothing" if value is None else repr(value)[:80]
