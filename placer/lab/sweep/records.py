"""The record of one run, a line of JSON; and the file of such lines, in which an interrupted sweep resumes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, ValidationError
from pydantic.alias_generators import to_camel

from placer.answers.document import TracePart, ValuePart
from placer.base.errors import BadInstance, Fault, UsageError
from placer.base.version import API_VERSION
from placer.lab.sweep.machine import Machine
from placer.problem.result import Termination, Verdict

__all__ = ["KEY", "Key", "KnownAnswer", "RunRecord", "Store", "read_lines", "read_record"]


#: What tells two runs apart: instance, seed, policy, limit, workers, version, config.
Key = tuple[str, int, str, float, int, str, str]
#: ... and their names.
KEY = ("instance", "seed", "policy", "limit", "workers", "version", "config")


class KnownAnswer(BaseModel):
    """The best placement known of an instance: ``NAME.best.*`` next to it, else the planted one, of which nothing is
    proved.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    weight: int
    weight_bound: int | None
    values: list[int]
    bounds: list[int | None]


def _as(kind: Any) -> tuple[PlainValidator, PlainSerializer]:
    def read(written: Any) -> Any:
        if isinstance(written, kind):
            return written
        return msgspec.convert({to_camel(name): value for name, value in dict(written).items()}, kind)

    return PlainValidator(read), PlainSerializer(kind.as_dict)


_AS_VALUE, _AS_TRACE = _as(ValuePart), _as(TracePart)


class RunRecord(BaseModel):
    """The result of one run; null is not known. All of the second part is null where ``error`` says why.

    Weights are placed weights of all priorities as one sum, in micro-nodes.

    Parameters
    ----------
    instance
        Family with its options, or path, as it was typed.
    seed
        Of the family's chance; of the policy's or the solver's where the instance is in files.
    limit
        Seconds of the whole call of a method.
    config
        First digits of a SHA-256: of the policy's configuration, a named scheduler, and the content of a policy of the
        reader's own; empty: its defaults, and any scheduler.
    placed_over_planted
        Above 1 where priorities, or jobs beyond the planted ones, let more be placed than was planted.
    weight_bound, weight_gap, weight_proved_by
        No placement exceeds it; |bound - value| / max(1, |value|).
    verdict
        None of a policy that breaks a rule.
    seconds
        Of the whole call, reading to writing.
    processor_seconds
        Of the process and its children, from the interpreter's start on.
    peak_memory_mib
        Of the process and its children at once: the sum of their high-water marks.
    error
        Why there is no result, or why it cannot be trusted.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    instance: str
    seed: int
    policy: str
    limit: float
    workers: int
    version: str
    config: str

    nodes: int | None = None
    pending: int | None = None
    placed_pods: int | None = None
    planted_weight: int | None = None
    placed_weight: int | None = None
    placed_over_planted: float | None = None
    known: KnownAnswer | None = None
    weight_bound: int | None = None
    weight_gap: float | None = None
    weight_proved_by: str | None = None
    objective: list[Annotated[ValuePart, *_AS_VALUE]] = []
    violations: dict[str, int] = {}
    victims: dict[str, int] | None = None
    verdict: Verdict | None = None
    termination: Termination | None = None
    seconds_to_first: float | None = None
    seconds: float | None = None
    processor_seconds: float | None = None
    trace: list[Annotated[TracePart, *_AS_TRACE]] = []
    peak_memory_mib: float | None = Field(default=None, alias="peakMemoryMiB")
    notes: list[str] = []
    findings: dict[str, int] = {}
    machine: Machine | None = None
    error: str | None = None

    @property
    def key(self) -> Key:
        """Distinguishes it from other runs."""
        return self.instance, self.seed, self.policy, self.limit, self.workers, self.version, self.config

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, names in camel case."""
        return {"apiVersion": API_VERSION, "kind": "SweepRun", **self.model_dump(mode="json", by_alias=True)}

    def text(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps(self.as_dict())


EXPECTED = "a line of placer sweep"


class Store:
    """A file of lines; nothing is written before the first new line.

    A last line that was cut off counts for nothing, and the next line takes its place. Lines of other runs than those
    of ``keys`` are skipped, and stay as they are.

    Raises
    ------
    BadInstance
        A line is not one of a sweep: this is some other file.
    UsageError
        The file cannot be read.
    """

    def __init__(self, path: str | Path, keys: Iterable[Key]) -> None:
        self._path = Path(path)
        self._good = 0  #: bytes up to the end of the last whole line
        self._begun = False
        #: Lines of the wanted runs that are there, failed ones too, by key; of several the last.
        self.known: dict[Key, RunRecord] = {}
        wanted = set(keys)
        for number, text in _whole_lines(self._path) if self._path.exists() else ():
            self._good += len(text)
            line = _line(self._path, number, text, wanted)
            if line is not None:
                self.known[line.key] = line

    def add(self, line: RunRecord) -> None:
        """Write a line, at once and whole; a :class:`UsageError` if the file cannot be written."""
        try:
            with self._path.open("r+b" if self._path.exists() else "wb") as file:
                if not self._begun:
                    file.truncate(self._good)
                    self._begun = True
                file.seek(0, 2)
                file.write(f"{line.text()}\n".encode())
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from error
        self.known[line.key] = line


def read_lines(path: str | Path) -> list[RunRecord]:
    """Read all lines of a file that ``sweep -o`` wrote, with the errors of :class:`Store`; of two of one run the
    last.
    """
    found: dict[Key, RunRecord] = {}
    for number, text in _whole_lines(Path(path)):
        line = _line(Path(path), number, text, None)
        if line is not None:
            found[line.key] = line
    return list(found.values())


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """All but a last line of ours that was cut off."""
    try:
        texts = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    for number, text in enumerate(texts, start=1):
        if number < len(texts) or text.endswith(b"\n") or not _begins_like_ours(text):
            yield number, text


def _line(path: Path, number: int, text: bytes, wanted: set[Key] | None) -> RunRecord | None:
    """None where the line is not wanted; ``wanted`` None: every line is."""
    try:
        value: dict[str, Any] = json.loads(text)
        key = tuple(value[name] for name in KEY)
        ours = wanted is None or key in wanted
    except (ValueError, KeyError, TypeError):
        found = repr(text[:60].decode(errors="replace"))
        raise BadInstance([Fault(str(path), None, f"line {number}", "", found, EXPECTED)]) from None
    return read_record(value, str(path), f"line {number}") if ours else None


def read_record(value: Any, file: str, where: str) -> RunRecord:
    """Read a line that is plain data already; ``file`` and ``where`` are for the :class:`BadInstance` where it is
    none.
    """
    try:
        return RunRecord.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise BadInstance([Fault(file, None, where, field, repr(first["input"])[:60], first["msg"])]) from None


def _begins_like_ours(text: bytes) -> bool:
    """Whether it may be a line of ours that was cut off; another file's text is never thrown away."""
    heads = (b'{"apiVersion": "placer.dev/v1alpha1", "kind": "SweepRun"', b'{"instance": ')
    return any(text.startswith(head) or head.startswith(text) for head in heads)
