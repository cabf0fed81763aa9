"""The options of passes, each declared once: key of a file, flag of ``run``, default, help, values and faults.

A file is a mapping in YAML or JSON whose keys, besides ``apiVersion`` and ``kind``, are flags (``timeLimit`` is
``--time-limit``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

from placer.base.deadline import duration
from placer.base.text import found_like, shown
from placer.search import METHODS

__all__ = ["METHOD_HELP", "OPTIONS", "Form", "Setting", "parse_address", "read_configuration", "seconds_of"]

METHOD_HELP = f"one of {', '.join(METHODS)} (default auto: never worse than greedy)"
_DAY, _HOUR = 86400, 3600


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
    found = duration(text)
    if not 1 <= found <= _HOUR:
        raise ValueError(text)
    return found


def parse_address(text: str) -> tuple[str, int]:
    """Read a host and a port to listen at; no host: every address of the machine. IPv6 is in brackets.

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


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


class Form(Enum):
    """Form of value, in words for messages."""

    SWITCH = "true or false"
    TEXT = "a text"
    WHOLE = "a whole number"
    SECONDS = "a number"
    NAMES = "a list of texts"
    PERIOD = "a duration of 1s to 1h, such as 30s or 1m30s"
    ADDRESS = "an address and a port, such as :8080"


#: Types of values but texts; a list of names that is empty fits none.
_TYPES: Mapping[Form, Any] = {Form.SWITCH: bool, Form.WHOLE: int, Form.SECONDS: float, Form.NAMES: ()}
_READ: Mapping[Form, Callable[[str], object]] = {Form.PERIOD: seconds_of, Form.ADDRESS: parse_address}
_OF_FLAG = {Form.WHOLE: int, Form.SECONDS: duration, Form.NAMES: _names}
_METAVAR = {Form.WHOLE: "N", Form.SECONDS: "DURATION", Form.PERIOD: "DURATION", Form.ADDRESS: "ADDRESS"}


class Setting(NamedTuple):
    """An option, by the name that argparse has for its flag; ``least`` and ``most`` are bounds of numbers."""

    name: str
    kind: Form
    help: str
    default: Any = None
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    group: str = ""

    @property
    def key(self) -> str:
        """The key in a file."""
        first, *rest = self.name.split("_")
        return first + "".join(map(str.capitalize, rest))

    @property
    def flag(self) -> str:
        """The flag on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def expected(self) -> str:
        """Its values in words."""
        if self.choices and self.kind is Form.TEXT:
            return f"one of {', '.join(self.choices)}"
        if self.least is None:
            return self.kind.value
        bounds = f"at least {self.least:g}" if self.most is None else f"{self.least:g} to {self.most:g}"
        return f"{self.kind.value}, {bounds}"

    def add_to(self, group: Any) -> None:
        """Add the flag to a parser, or a group of one."""
        if self.kind is Form.SWITCH:
            group.add_argument(self.flag, action="store_true", help=self.help)
            return
        known: dict[str, Any] = {"type": _OF_FLAG[self.kind]} if self.kind in _OF_FLAG else {}
        if self.choices and self.kind is Form.TEXT:
            known["choices"] = self.choices
        if self.name == "dry_run":
            known |= {"nargs": "?", "const": "client"}
        metavar = self.metavar or _METAVAR.get(self.kind)
        action = group.add_argument(self.flag, default=self.default, metavar=metavar, help=self.help, **known)
        action.hidden = self.name.startswith("leader_elect")

    def read(self, value: Any) -> Any:
        """A value of a file; seconds may be a duration, and ``inf`` has no other form in JSON."""
        if self.kind is not Form.SECONDS:
            return value
        if isinstance(value, str) and (value == "inf" or value[-1:].isalpha()):
            with suppress(ValueError):
                return duration(value)
        return float(value) if type(value) is int else value

    def faults(self, value: Any) -> Iterator[tuple[str, str]]:
        """The faults of a value: place in it, and text."""
        wrong = [("", value)]
        if self.kind is Form.NAMES and isinstance(value, list) and value:
            wrong = [(f"[{at}]", each) for at, each in enumerate(value) if not self._is_text(each)]
        elif self._fits(self.read(value)):
            return
        yield from ((place, f"found {shown(json.dumps(each))}, expected {self.expected}") for place, each in wrong)

    def _is_text(self, value: object) -> bool:
        return isinstance(value, str) and bool(value) and (not self.choices or value in self.choices)

    def _fits(self, value: Any) -> bool:
        if not isinstance(value, _TYPES.get(self.kind, str)) or isinstance(value, bool) != (self.kind is Form.SWITCH):
            return False
        if self.kind in _READ:
            with suppress(ValueError):
                return bool(_READ[self.kind](value))
            return False
        if self.kind is Form.TEXT:
            return self._is_text(value)
        return self.least is None or bool(self.least <= value and (self.most is None or value <= self.most))


_ALL = (
    Setting(
        "kubeconfig",
        Form.TEXT,
        "default: KUBECONFIG, else ~/.kube/config, else the service account of the pod this runs in",
        metavar="FILE",
        group="cluster",
    ),
    Setting("context", Form.TEXT, "one of the kubeconfig's; default its current one", metavar="NAME", group="cluster"),
    Setting(
        "scheduler_name",
        Form.TEXT,
        "whose pending pods are ours; '*', any scheduler's, only with --dry-run (default placer)",
        "placer",
        "NAME",
    ),
    Setting("strict", Form.SWITCH, "findings are errors (exit 3): nothing is bound"),
    Setting("method", Form.TEXT, METHOD_HELP, "auto", "METHOD", choices=METHODS, group="searching"),
    Setting("time_limit", Form.SECONDS, "until the first binding (default 20)", 20.0, group="searching"),
    Setting(
        "namespace_budget",
        Form.TEXT,
        "budget of each namespace: terms=N,resources=N,bytes=N, default or off",
        "default",
        "BUDGET",
        group="searching",
    ),
    Setting("workers", Form.WHOLE, "solver threads (default: the cores there are)", group="searching"),
    Setting("seed", Form.WHOLE, "default 0", 0, group="searching"),
    Setting(
        "dry_run",
        Form.TEXT,
        "write nothing; =server: let the server try each binding and keep none",
        "",
        choices=("client", "server"),
        group="binding",
    ),
    Setting("bind_workers", Form.WHOLE, "bindings at a time (default 16)", 16, None, 1, 256, group="binding"),
    Setting(
        "gang_grace",
        Form.SECONDS,
        "how long a gang may go without another of its pods being bound, before it is given up (default 30)",
        *(30.0, None, 0, _HOUR),
        group="binding",
    ),
    Setting(
        "half_bound_patience",
        Form.SECONDS,
        "how long a gang may be half-bound before its bound pods are deleted; inf: for ever (default 300)",
        *(300.0, None, 0),
        group="binding",
    ),
    Setting("roll_back", Form.SWITCH, "the same as --half-bound-patience 0: at the end of the pass", group="binding"),
    Setting(
        "settle",
        Form.SECONDS,
        "most seconds that a pass without --every waits for kubelets at the end (default 5)",
        *(5.0, None, 0, 600),
        group="binding",
    ),
    Setting(
        "cool_down",
        Form.SECONDS,
        "how long a node gets nothing new after its kubelet rejected a pod of ours (default 300); a "
        "workload that several kubelets reject is retried with back-off",
        *(300.0, None, 0, _DAY),
        group="binding",
    ),
    Setting(
        "inqueue",
        Form.SWITCH,
        "move Pending PodGroups of our pods and Volcano jobs to Inqueue first; not where vc-scheduler runs",
        group="binding",
    ),
    Setting(
        "namespaces", Form.NAMES, "place pods of these namespaces alone (default all)", None, "NAME,...", group="guards"
    ),
    Setting(
        "node_selector",
        Form.TEXT,
        "bind to nodes with these labels alone, as kubectl takes them: pool=batch,!spare (default all)",
        metavar="SELECTOR",
        group="guards",
    ),
    Setting(
        "max_bindings",
        Form.WHOLE,
        "most pods bound in a pass, in whole gangs (default any number)",
        least=1,
        group="guards",
    ),
    Setting(
        "max_evictions_per_hour",
        Form.WHOLE,
        "most pods evicted or moved within an hour, where the Policy's disruption has it so (default 0: none)",
        *(0, None, 0),
        group="making room",
    ),
    Setting(
        "gone_within",
        Form.SECONDS,
        "how long a pass waits until evicted pods are gone, and moved ones were made again (default 30)",
        *(30.0, None, 0, _HOUR),
        group="making room",
    ),
    Setting(
        "hold_room",
        Form.SECONDS,
        "how long room that was made is held for its gang by the passes that follow (default 600)",
        *(600.0, None, 0, _HOUR),
        group="making room",
    ),
    Setting(
        "leader_elect_resource_namespace",
        Form.TEXT,
        "of the Lease that a pass holds that writes, and of the record of half-bound gangs (default: that of the "
        "pod this runs in, else placer)",
        metavar="NAMESPACE",
        group="leader election",
    ),
    Setting(
        "leader_elect_resource_name",
        Form.TEXT,
        "of that Lease; the record is called NAME-gangs (default placer)",
        metavar="NAME",
        group="leader election",
    ),
    Setting(
        "no_conditions", Form.SWITCH, "leave conditions of pods and of Kubernetes' PodGroups alone", group="telling"
    ),
    Setting("no_events", Form.SWITCH, "write no Events", group="telling"),
    Setting(
        "no_group_status", Form.SWITCH, "leave Volcano's PodGroups alone, as where vc-scheduler runs", group="telling"
    ),
    Setting(
        "tell_limit",
        Form.SECONDS,
        "most seconds for all of this; the next pass writes the rest (default 20)",
        *(20.0, None, 0, _HOUR),
        group="telling",
    ),
    Setting(
        "controllers",
        Form.NAMES,
        "write in place of controllers of AppGroup, NetworkTopology, HyperNode (default: of none)",
        metavar="KIND,...",
        choices=("AppGroup", "NetworkTopology", "HyperNode"),
        group="telling",
    ),
    Setting(
        "save",
        Form.TEXT,
        "keep the snapshot and the Placement of the pass there, for `placer solve`",
        metavar="FOLDER",
        group="telling",
    ),
    Setting("save_keep", Form.WHOLE, "most passes that are kept there (default: all)", least=1, group="telling"),
    Setting(
        "save_keep_bytes", Form.WHOLE, "most bytes of them together (default: any)", None, "BYTES", 1, group="telling"
    ),
    Setting(
        "every",
        Form.PERIOD,
        "pass after pass: when something has changed, and at least so often (10s, 1m30s); default: one pass",
    ),
    Setting(
        "metrics_bind_address",
        Form.ADDRESS,
        "with --every: where /metrics, /livez and /readyz are answered (:8080); default: nowhere",
    ),
    Setting(
        "report_bind_address",
        Form.ADDRESS,
        "with --every: where /report shows the last pass (127.0.0.1:8090, for kubectl port-forward). "
        "The page names the objects of every namespace, and asks nobody who they are; default: nowhere",
    ),
    Setting(
        "enforce",
        Form.TEXT,
        "gates: decide for pods with the gate placer.dev/hold, too, and let their own scheduler bind them there",
        "bind",
        choices=("bind", "gates"),
    ),
)
#: Every option by name, in the order of ``--help``.
OPTIONS = {each.name: each for each in _ALL}
_HEAD = {"apiVersion": "placer.dev/v1alpha1", "kind": "Configuration"}


def read_configuration(file: str) -> tuple[dict[str, Any], list[str]]:
    """Read a file, or ``-``, standard input.

    Returns
    -------
    dict
        Values by names of options; empty where there are faults.
    list
        All faults: file, key, what was found and expected.
    """
    from placer.base.errors import BadInstance
    from placer.kube.manifests.syntax import YamlError

    try:
        written = _parsed(file)
    except BadInstance as error:
        return {}, [str(each) for each in error.faults]
    except YamlError as error:
        return {}, [f"{file}: {error.place}: found {error.found}, expected {error.expected}"]
    if not isinstance(written, dict):
        return {}, [f"{file}: found {shown(json.dumps(written))}, expected one mapping of keys to values"]
    if faults := [f"{file}: {each}" for each in _faults(written)]:
        return {}, faults
    values = ((each.name, each.read(written.get(each.key))) for each in _ALL)
    return {name: value for name, value in values if value is not None}, []


def _parsed(file: str) -> object:
    from placer.kube.manifests import read_texts
    from placer.kube.manifests.syntax import documents

    found = [each for text in read_texts([file]) for each in documents(bytes(text.data)) if each.pieces]
    values = [json.loads("".join(each.pieces)) for each in found]
    return values[0] if len(values) == 1 else values


def _faults(written: Mapping[str, object]) -> Iterator[str]:
    for key, value in _HEAD.items():
        if written.get(key) != value:
            found = shown(json.dumps(written[key])) if key in written else "nothing"
            yield f"{key}: found {found}, expected {value}"
    for each in _ALL:
        if written.get(each.key) is not None:
            yield from (f"{each.key}{place}: {text}" for place, text in each.faults(written[each.key]))
    keys = [*_HEAD, *(each.key for each in _ALL)]
    for key in written:
        if key not in keys:
            like = found_like(key, keys)
            yield f"{key}: found a key that there is not, expected one that is a flag of `placer run`{like}"
