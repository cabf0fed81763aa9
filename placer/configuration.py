"""The configuration of passes in one file, a mapping in YAML or JSON: its keys, their values, and faults.

Keys besides ``apiVersion`` and ``kind`` are flags of ``run`` (``timeLimit`` is ``--time-limit``), with their defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from placer.deadline import duration as read_duration
from placer.errors import BadInstance
from placer.legible import found_like, shown
from placer.manifests import read_texts
from placer.manifests.syntax import YamlError, documents

__all__ = ["Configuration", "key_of", "parse_address", "read_configuration", "seconds_of", "wrong_values"]


def _seconds(value: object) -> object:
    """Read a duration; ``inf`` is a text in YAML, and has no form in JSON."""
    try:
        return read_duration(value) if isinstance(value, str) and (value == "inf" or value[-1:].isalpha()) else value
    except ValueError:
        return value


def seconds_of(text: str) -> float:
    """Read the period of passes.

    Raises
    ------
    ValueError
        It is no duration, or not between 1 s and 1 h.

    Examples
    --------
    >>> seconds_of("30s"), seconds_of("1m30s")
    (30.0, 90.0)
    """
    found = read_duration(text)
    if not 1 <= found <= 3600:
        raise ValueError(text)
    return found


def parse_address(text: str) -> tuple[str, int]:
    """Read a host and a port to listen at; no host: every address of the machine. IPv6 is in brackets.

    Raises
    ------
    ValueError
        It is no such thing.

    Examples
    --------
    >>> parse_address(":8080"), parse_address("127.0.0.1:0"), parse_address("[::]:8080")
    (('', 8080), ('127.0.0.1', 0), ('::', 8080))
    """
    host, colon, port = text.rpartition(":")
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else ""
    if not colon or (":" in host) != (":" in inner) or not port.isdecimal() or int(port) > 65535:
        raise ValueError(text)
    return inner or host, int(port)


def _address(value: str) -> str:
    parse_address(value)
    return value


def _duration(value: str) -> str:
    seconds_of(value)
    return value


Duration = Annotated[
    str, AfterValidator(_duration), Field(description="a duration of 1s to 1h, such as 30s or 1m30s", min_length=1)
]
Address = Annotated[
    str, AfterValidator(_address), Field(description="an address and a port, such as :8080", min_length=1)
]
Hour = Annotated[float, Field(ge=0, le=3600), BeforeValidator(_seconds)]
Name = Annotated[str, Field(min_length=1)]


class Configuration(BaseModel):
    """Every key; None: absent. A test compares them with the flags of ``run``."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)

    api_version: Literal["placer.dev/v1alpha1"]
    kind: Literal["Configuration"]
    kubeconfig: Name | None = None
    context: Name | None = None
    scheduler_name: Name | None = None
    strict: bool | None = None
    method: Literal["auto", "greedy", "exact", "decomposed", "milp"] | None = None
    time_limit: Annotated[float, BeforeValidator(_seconds)] | None = None
    namespace_budget: Name | None = None
    workers: int | None = None
    seed: int | None = None
    dry_run: Literal["client", "server"] | None = None
    bind_workers: Annotated[int, Field(ge=1, le=256)] | None = None
    gang_grace: Hour | None = None
    half_bound_patience: Annotated[float, Field(ge=0), BeforeValidator(_seconds)] | None = None
    roll_back: bool | None = None
    settle: Annotated[float, Field(ge=0, le=600), BeforeValidator(_seconds)] | None = None
    cool_down: Annotated[float, Field(ge=0, le=86400), BeforeValidator(_seconds)] | None = None
    inqueue: bool | None = None
    leader_elect_resource_namespace: Name | None = None
    leader_elect_resource_name: Name | None = None
    no_conditions: bool | None = None
    no_events: bool | None = None
    no_group_status: bool | None = None
    tell_limit: Hour | None = None
    save: Name | None = None
    save_keep: Annotated[int, Field(ge=1)] | None = None
    save_keep_bytes: Annotated[int, Field(ge=1)] | None = None
    namespaces: Annotated[list[Name], Field(min_length=1)] | None = None
    node_selector: Name | None = None
    max_bindings: Annotated[int, Field(ge=1)] | None = None
    max_evictions_per_hour: Annotated[int, Field(ge=0)] | None = None
    gone_within: Hour | None = None
    hold_room: Hour | None = None
    controllers: Annotated[list[Literal["AppGroup", "NetworkTopology", "HyperNode"]], Field(min_length=1)] | None = None
    every: Duration | None = None
    metrics_bind_address: Address | None = None
    report_bind_address: Address | None = None
    enforce: Literal["bind", "gates"] | None = None


#: What says that a mapping is a configuration, and is no flag.
HEAD = ("api_version", "kind")


def key_of(name: str) -> str:
    """The key of a flag, which argparse calls so.

    Examples
    --------
    >>> key_of("time_limit")
    'timeLimit'
    """
    return to_camel(name)


def read_configuration(file: str) -> tuple[dict[str, Any], list[str]]:
    """Read a file, or ``-``, standard input.

    Returns
    -------
    dict
        Values by the names that argparse has for the flags; empty where there are faults.
    list
        All faults: file, key, what was found and expected.
    """
    try:
        written = _parsed(file)
    except BadInstance as error:
        return {}, [str(each) for each in error.faults]
    except YamlError as error:
        return {}, [f"{file}: {error.place}: found {error.found}, expected {error.expected}"]
    if not isinstance(written, dict):
        return {}, [f"{file}: found {shown(json.dumps(written))}, expected one mapping of keys to values"]
    try:
        found = Configuration.model_validate(written)
    except ValidationError as error:
        return {}, [f"{file}: {each}" for each in _faults(error)]
    return found.model_dump(exclude_none=True, exclude=set(HEAD)), []


def wrong_values(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Find wrong values of flags, by their names in argparse: name and fault.

    Examples
    --------
    >>> list(wrong_values({"settle": -1.0, "gang_grace": 5.0}))
    [('settle', 'found -1.0, expected a number, 0 to 600')]
    """
    said = {key_of(name): each for name, each in values.items() if each is not None}
    names = {key_of(name): name for name in values}
    try:
        Configuration.model_validate({"apiVersion": "placer.dev/v1alpha1", "kind": "Configuration", **said})
    except ValidationError as error:
        for fault in _faults(error):
            key, _, text = fault.partition(": ")
            yield names[key.partition("[")[0]], text


def _parsed(file: str) -> object:
    texts = read_texts([file])
    found = [each for text in texts for each in documents(bytes(text.data)) if each.pieces]
    values = [json.loads("".join(each.pieces)) for each in found]
    return values[0] if len(values) == 1 else values


def _faults(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_url=False, include_context=False):
        key, place = str(each["loc"][0]), _path(each["loc"])
        if each["type"] == "extra_forbidden":
            hint = found_like(key, _schema())
            yield f"{place}: found a key that there is not, expected one that is a flag of `placer run`{hint}"
        elif each["type"] == "missing":
            yield f"{place}: found nothing, expected {_expected(_schema()[key])}"
        else:
            yield f"{place}: found {_shown(each['input'])}, expected {_expected(_schema()[key])}"


def _path(loc: Sequence[str | int]) -> str:
    return str(loc[0]) + "".join(f"[{each}]" for each in loc[1:])


def _shown(value: object) -> str:
    return shown(json.dumps(value))


def _schema() -> dict[str, Any]:
    found: dict[str, Any] = Configuration.model_json_schema(by_alias=True)["properties"]
    return found


def _expected(schema: Mapping[str, Any]) -> str:
    own = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    if "description" in own:
        return str(own["description"])
    if "const" in own:
        return str(own["const"])
    if "enum" in own:
        return f"one of {', '.join(own['enum'])}"
    low, high = own.get("minimum"), own.get("maximum")
    between = "" if low is None else f", {low:g} to {high:g}" if high is not None else f", at least {low:g}"
    return _TYPES[own["type"]] + between


_TYPES = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list of texts",
}
