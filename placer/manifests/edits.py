"""The what-if options: objects added, left out, changed, before anything is validated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from placer.errors import UsageError
from placer.kube import find_kinds
from placer.manifests import yamltext
from placer.manifests.limits import shown
from placer.manifests.paths import parse_path, path_text
from placer.manifests.raw_objects import Identity, RawObject
from placer.manifests.settable import is_list, unread

__all__ = ["edit"]


def edit(
    raws: Iterable[RawObject],
    *,
    with_: Iterable[RawObject] = (),
    without: Sequence[str] = (),
    set_: Sequence[str] = (),
) -> list[RawObject]:
    """Apply the what-if options: first what is added, then what is left out, then what is changed.

    Parameters
    ----------
    raws
        The instance's objects.
    with_
        Objects to add; one of the same API group, kind, namespace and name is replaced where it stands.
    without
        Objects to leave out, ``KIND/[NAMESPACE/]NAME``. KIND as kubectl takes it; without a namespace the one of that
        name in ``default``, else the only one.
    set_
        Fields to change, ``KIND/[NAMESPACE/]NAME:PATH=VALUE``: PATH from the object's root, VALUE as YAML; an empty
        VALUE or ``null`` leaves the field out, an index one beyond the end of a list adds to it. Something must read
        the field.

    Returns
    -------
    list of RawObject
        The edited objects; those that were not touched are the same.

    Raises
    ------
    UsageError
        An option does not parse, or what it names is not there or not one thing, or nothing reads what it sets.
    """
    result = _added(list(raws), with_)
    for words in without:
        del result[_find(result, words, f"--without {words}")]
    for words in set_:
        target, steps, value = _assignment(words)
        index = _find(result, target, f"--set {words}")
        raw = result[index]
        result[index] = _changed(raw, steps, value, f"--set {words}")
        why = unread(raw.info, f"{raw.api_version} {raw.kind}", steps)
        if why:
            raise UsageError(f"--set {words}: {why}")
    return result


def _added(raws: list[RawObject], added: Iterable[RawObject]) -> list[RawObject]:
    places = {raw.identity: index for index, raw in enumerate(raws)}
    seen: set[Identity] = set()
    for raw in added:
        index = places.get(raw.identity)
        if index is None or raw.identity in seen:  # given twice: both stay, for validation to tell
            raws.append(raw)
        else:
            raws[index] = raw
        seen.add(raw.identity)
    return raws


def _find(raws: Sequence[RawObject], words: str, option: str) -> int:
    """Index of the one object that ``KIND/[NAMESPACE/]NAME`` names."""
    parts = words.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise UsageError(f"{option}: expected KIND/[NAMESPACE/]NAME")
    kind, *namespace, name = parts
    named = [index for index, raw in enumerate(raws) if raw.name == name and _is_kind(raw, kind)]
    inside = [index for index in named if not namespace or raws[index].identity[2] == namespace[0]]
    if not namespace and len(inside) > 1:
        inside = [index for index in inside if raws[index].identity[2] in ("", "default")] or inside
    if not inside:
        raise UsageError(f"{option}: no {kind} {'/'.join([*namespace, name])} in the instance")
    if len(inside) > 1:
        several = ", ".join(sorted(_full_name(raws[index]) for index in inside))
        raise UsageError(f"{option}: more than one object has that name: {several}")
    return inside[0]


def _is_kind(raw: RawObject, word: str) -> bool:
    """Whether a word names the object's kind; kinds that are not read are known by their own name only."""
    info = raw.info
    if info is not None:
        return info in find_kinds(word)
    name, _, group = word.lower().partition(".")
    kind = raw.kind.lower()
    return name in (kind, f"{kind}s", f"{kind}es") and (not group or group == raw.group)


def _full_name(raw: RawObject) -> str:
    group, kind, namespace, name = raw.identity
    return "/".join(part for part in (f"{kind.lower()}.{group}".rstrip("."), namespace, name) if part)


def _assignment(words: str) -> tuple[str, list[str], Any]:
    """Target, steps of the path, and value of ``KIND/[NAMESPACE/]NAME:PATH=VALUE``."""
    target, colon, rest = words.partition(":")
    depth, split = 0, -1
    for position, character in enumerate(rest):
        depth += (character == "[") - (character == "]")
        if character == "=" and not depth:
            split = position
            break
    if not colon or split < 0:
        raise UsageError(f"--set {words}: expected KIND/[NAMESPACE/]NAME:PATH=VALUE")
    try:
        steps = parse_path(rest[:split])
    except ValueError:
        raise UsageError(f"--set {words}: {rest[:split]!r} is not a path such as spec.minMember") from None
    return target, steps, _parsed(rest[split + 1 :], words)


def _parsed(text: str, words: str) -> Any:
    """Read a value as YAML."""
    try:
        found = list(yamltext.documents(text.encode()))
    except yamltext.YamlError as error:
        raise UsageError(f"--set {words}: the value has {error.found}, expected {error.expected}") from None
    if len(found) > 1:
        raise UsageError(f"--set {words}: expected one value")
    return msgspec.json.decode("".join(found[0].pieces)) if found and found[0].pieces else None


def _changed(raw: RawObject, steps: list[str], value: Any, option: str) -> RawObject:
    """Give the object with one field changed."""
    document = msgspec.json.decode(raw.text)
    place = document
    for done, step in enumerate(steps[:-1], 1):
        key = _key(place, step, steps[:done], option)
        if isinstance(place, list) and key == len(place):
            place.append({})
        if isinstance(place, dict) and place.get(key) is None:
            place[key] = [] if is_list(raw.info, steps[:done]) else {}
        place = place[key]
    key = _key(place, steps[-1], steps, option)
    if isinstance(place, list) and key == len(place):
        place.append(value)
    elif value is None:
        if isinstance(place, list) or key in place:
            del place[key]
    else:
        place[key] = value
    file = f"{raw.file} with {shown(option, 200)}"
    return msgspec.structs.replace(raw, text=msgspec.Raw(msgspec.json.encode(document)), file=file, fits=False)


def _key(place: Any, step: str, steps: list[str], option: str) -> Any:
    """Make a step fit what it is applied to: an index of a list, a key of an object."""
    if isinstance(place, dict):
        return step
    if not isinstance(place, list):
        raise UsageError(f"{option}: {path_text(steps[:-1])} is neither an object nor a list")
    if not step.isdecimal() or int(step) > len(place):
        raise UsageError(f"{option}: {path_text(steps[:-1])} has {len(place)} items, {step!r} is none of them")
    return int(step)
