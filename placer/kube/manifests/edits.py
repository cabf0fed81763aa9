"""The what-if options: objects added, left out, changed, before anything is validated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from placer.base.errors import UsageError
from placer.base.text import alike, found_like, shown
from placer.kube.kinds import Fields, KindInfo, Steps, find_kinds, known_fields, nearest, read_fields
from placer.kube.manifests import syntax
from placer.kube.manifests.faults import path_text
from placer.kube.manifests.label_selectors import matches, parse_label_selector
from placer.kube.manifests.raw_objects import Identity, RawObject


def edit(
    raws: Iterable[RawObject],
    *,
    with_: Iterable[RawObject] = (),
    without: Sequence[str] = (),
    set_: Sequence[str] = (),
) -> list[RawObject]:
    """Apply the what-if options: first objects are added, then left out, then changed.

    ``with_``: one of the same API group, kind, namespace and name is replaced. ``without``: ``KIND/[NAMESPACE/]NAME``,
    by default the one in ``default``, else the only one; or ``KIND[/NAMESPACE] --where SELECTOR``. ``set_``: the same
    with ``:PATH=VALUE``, VALUE as YAML; empty or ``null`` leaves the field out.

    Raises
    ------
    UsageError
        An option does not parse, names no object or several, or sets a field that nothing reads.
    """
    result = _added(list(raws), with_)
    for words in without:
        option = f"--without {words}"
        gone = set(_find(result, *_selected(words), option))
        result = [raw for index, raw in enumerate(result) if index not in gone]
    for words in set_:
        option = f"--set {words}"
        assigned, selector = _selected(words)
        target, steps, value = _assignment(assigned)
        for index in _find(result, target, selector, option):
            raw = result[index]
            result[index] = _changed(raw, steps, value, option)
            why = _unread(raw.info, f"{raw.api_version} {raw.kind}", steps)
            if why:
                raise UsageError(f"{option}: {why}")
    return result


def _selected(words: str) -> tuple[str, str | None]:
    target, flag, selector = words.partition(" --where ")
    return (target.strip(), selector.strip()) if flag else (words, None)


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


def _find(raws: Sequence[RawObject], words: str, selector: str | None, option: str) -> list[int]:
    return [_find_named(raws, words, option)] if selector is None else _find_labelled(raws, words, selector, option)


def _find_labelled(raws: Sequence[RawObject], words: str, selector: str, option: str) -> list[int]:
    if not re.fullmatch("[^/]+(/[^/]+)?", words):
        raise UsageError(f"{option}: expected KIND[/NAMESPACE] before --where")
    kind, _, namespace = words.partition("/")
    try:
        tests = parse_label_selector(selector)
    except ValueError:
        raise UsageError(f"{option}: {selector!r} is not a selector such as rack=r7,!spare") from None
    there = [index for index, raw in enumerate(raws) if _is_kind(raw, kind) and namespace in ("", raw.identity[2])]
    found = [index for index in there if matches(tests, _labels(raws[index]))]
    _check_one_kind(map(raws.__getitem__, found), option)
    if not found:
        others = f"none of the {len(there):,} has these labels" if there else f"there are no items{_like(raws, kind)}"
        raise UsageError(f"{option}: no {words} with {selector} in the instance; {others}")
    return found


def _check_one_kind(raws: Iterable[RawObject], option: str) -> None:
    kinds = sorted({f"{raw.kind.lower()}.{raw.group}".rstrip(".") for raw in raws})
    if len(kinds) > 1:
        raise UsageError(f"{option}: more than one kind has that name: {', '.join(kinds)}")


_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode


def _labels(raw: RawObject) -> dict[str, Any]:
    nothing = msgspec.Raw(b"null")
    try:
        metadata = _read_fields((_read_fields(raw.text) or {}).get("metadata", nothing)) or {}
        return msgspec.json.decode(metadata.get("labels", nothing), type=dict[str, Any] | None) or {}
    except (msgspec.DecodeError, RecursionError):
        return {}


def _find_named(raws: Sequence[RawObject], words: str, option: str) -> int:
    parts = words.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise UsageError(f"{option}: expected KIND/[NAMESPACE/]NAME")
    kind, *namespace, name = parts
    found = _named(raws, kind, namespace, name)
    if not found:
        raise UsageError(f"{option}: no {kind} {'/'.join([*namespace, name])} in the instance{_like(raws, kind, name)}")
    if len(found) > 1:
        several = ", ".join(sorted(_full_name(raws[index]) for index in found))
        raise UsageError(f"{option}: more than one object has that name: {several}")
    return found[0]


def _like(raws: Sequence[RawObject], kind: str, name: str = "") -> str:
    named = {str(raw.name): _full_name(raw) for raw in raws if _is_kind(raw, kind)}
    like = alike(name, named)
    if named:
        return f"; found like it: {named[like]}" if like is not None else ""
    return found_like(kind, {raw.kind.lower() for raw in raws})


def _named(raws: Sequence[RawObject], kind: str, namespace: list[str], name: str) -> list[int]:
    found = [index for index, raw in enumerate(raws) if raw.name == name and _is_kind(raw, kind)]
    inside = [index for index in found if raws[index].identity[2] in (namespace or ("", "default"))]
    return inside if inside or namespace else found


def _is_kind(raw: RawObject, word: str) -> bool:
    """Kinds that are not read are known by their own name only."""
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
        steps = _parse_path(rest[:split])
    except ValueError:
        raise UsageError(f"--set {words}: {rest[:split]!r} is not a path such as spec.minMember") from None
    return target, steps, _parsed(rest[split + 1 :], words)


def _parsed(text: str, words: str) -> Any:
    try:
        found = list(syntax.documents(text.encode()))
    except syntax.YamlError as error:
        raise UsageError(f"--set {words}: the value has {error.found}, expected {error.expected}") from None
    if len(found) > 1:
        raise UsageError(f"--set {words}: expected one value")
    return msgspec.json.decode("".join(found[0].pieces)) if found and found[0].pieces else None


def _changed(raw: RawObject, steps: list[str], value: Any, option: str) -> RawObject:
    document = msgspec.json.decode(raw.text)
    place = document
    for done in range(1, len(steps)):
        key = _key(place, steps[:done], option)
        if isinstance(place, list) and key == len(place):
            place.append({})
        if isinstance(place, dict) and place.get(key) is None:
            place[key] = [] if _is_list(raw.info, steps[:done]) else {}
        place = place[key]
    _put(place, _key(place, steps, option), value)
    file = f"{raw.file} with {shown(option, 200)}"
    return msgspec.structs.replace(raw, text=msgspec.Raw(msgspec.json.encode(document)), file=file, fits=False)


def _put(place: Any, key: Any, value: Any) -> None:
    if isinstance(place, list) and key == len(place):
        place.append(value)
    elif value is not None:
        place[key] = value
    elif isinstance(place, list) or key in place:
        del place[key]


def _key(place: Any, steps: list[str], option: str) -> Any:
    step = steps[-1]
    if isinstance(place, dict):
        return step
    if not isinstance(place, list):
        raise UsageError(f"{option}: {path_text(steps[:-1])} is neither an object nor a list")
    if not step.isdecimal() or int(step) > len(place):
        raise UsageError(f"{option}: {path_text(steps[:-1])} has {len(place)} items, found {step!r}")
    return int(step)


_STEP = re.compile(r"(?P<dot>\.?)(?:(?P<word>[^.\[\]]+)|\[(?P<bracket>[^\[\]]+)\])")


def _parse_path(text: str) -> list[str]:
    """Read a path; whether a step of digits is an index or a key depends on the value at that place."""
    steps, position = [], 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or match["dot"] != ("." if position and match["word"] else ""):
            raise ValueError(text)
        steps.append(match["word"] or match["bracket"])
        position = match.end()
    if not steps:
        raise ValueError(text)
    return steps


# ------------------------------------------------------------------------------------- whether anything reads it


def _unread(info: KindInfo | None, kind: str, steps: Sequence[str]) -> str:
    if info is None:
        return f"{kind} is not read, so nothing that is set in it decides anything"
    above: list[tuple[Steps, Fields]] = [((), read_fields(info))]
    for number, step in enumerate(steps):
        place, here = above[-1]
        if here.is_list:
            above[-1] = ((*place, int(step)), Fields(here.names, here.values))
            continue
        below = here.under(step)
        if below is None:
            return _why(info, kind, above, steps[number:])
        above.append(((*place, step), below))
    return ""


def _is_list(info: KindInfo | None, steps: Sequence[str]) -> bool:
    here = read_fields(info).at(steps) if info is not None else None
    return here is not None and here.is_list


def _why(info: KindInfo, kind: str, above: Sequence[tuple[Steps, Fields]], rest: Sequence[str]) -> str:
    place, here = above[-1]
    path = path_text((*place, rest[0]))
    if len(above) > 1 and above[-2][1].values is here:  # below a label: its name was cut at its dots
        whole = path_text((*above[-2][0], ".".join((str(place[-1]), *rest))))
        return f"nothing reads {path}; a key that has dots stands in brackets: {whole}"
    like = nearest(rest[0], above)
    words = f"; found like it: {path_text(like)}" if like else ""
    known = known_fields(info)
    if known is not None and known.at((*place, rest[0])) is not None:
        return f"{path} is a field of {kind} that nothing reads, so it decides nothing{words}"
    return f"{path} is no field of {kind}{words}"
