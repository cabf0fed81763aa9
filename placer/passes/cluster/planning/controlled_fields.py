"""Fields of an object that a controller writes: those without another field manager, and only where one changes.

The owners are in ``metadata.managedFields`` (Kubernetes, "Server-Side Apply"). A list that is not declared a map is one
field with its whole content, as ``spec.weights`` of a NetworkTopology.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FIELD_MANAGER", "FieldUpdate", "field_update"]

#: Who owns the fields that are written.
FIELD_MANAGER = "placer-controllers"

Document = Mapping[str, Any]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldUpdate:
    """An update to apply.

    Parameters
    ----------
    document
        The apply configuration, of the version that was read; None: nothing changes.
    left
        Differing fields of other owners, as ``PATH (MANAGER)``.
    """

    document: dict[str, Any] | None
    left: tuple[str, ...] = ()


def field_update(stored: Document, wanted: Mapping[Path, Any]) -> FieldUpdate:
    """Compare fields with their wanted values.

    A field with its wanted value is left to its owner. A field that is to be removed is, where the controller alone
    owns it.

    Parameters
    ----------
    stored
        The object with its managed fields.
    wanted
        Path of every field that the controller may write to its value; None: absent.
    """
    owners = {path: _owners(stored, path) for path in wanted}
    given = _given({path: value for path, value in wanted.items() if owners[path] <= {_OURS}})
    differs = _differing(stored, wanted)
    left = tuple(_left(path, owners[path]) for path in differs if path not in given)
    owned = {path for path, found in owners.items() if _OURS in found}
    is_kept = given.keys().isdisjoint(differs) and owned <= given.keys()
    return FieldUpdate(None if is_kept else _configuration(stored, given), left)


def _left(path: Path, owners: frozenset[tuple[str, str]]) -> str:
    return f"{'.'.join(path)} ({', '.join(sorted(name for name, _ in owners - {_OURS}))})"


def _differing(stored: Document, wanted: Mapping[Path, Any]) -> list[Path]:
    return [path for path, value in _given(wanted).items() if _value(stored, path) != value]


def _given(wanted: Mapping[Path, Any]) -> dict[Path, Any]:
    return {path: value for path, value in wanted.items() if value is not None}


#: Name and operation: what somebody updates under our name is not ours to apply.
_OURS = (FIELD_MANAGER, "Apply")


def _owners(stored: Document, path: Path) -> frozenset[tuple[str, str]]:
    found = set()
    for entry in stored["metadata"].get("managedFields") or ():
        fields: Any = entry.get("fieldsV1") or {}
        for name in path:
            fields = fields.get(f"f:{name}") if fields is not None else None
        if fields is not None:
            found.add((entry.get("manager", ""), entry.get("operation", "")))
    return frozenset(found)


def _value(stored: Document, path: Path) -> Any:
    found: Any = stored
    for name in path:
        found = (found or {}).get(name)
    return found


def _configuration(stored: Document, given: Mapping[Path, Any]) -> dict[str, Any]:
    names = ("name", "namespace", "resourceVersion")
    metadata = {name: stored["metadata"][name] for name in names if name in stored["metadata"]}
    document: dict[str, Any] = {"apiVersion": stored["apiVersion"], "kind": stored["kind"], "metadata": metadata}
    for (*above, name), value in given.items():
        inside = document
        for each in above:
            inside = inside.setdefault(each, {})
        inside[name] = value
    return document
