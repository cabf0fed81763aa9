"""One run in figures, a line of JSON; and the file of such lines, in which a sweep goes on where it was broken off."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from placer.document import ValuePart
from placer.errors import BadInstance, Fault, UsageError
from placer.result import Termination, Verdict

__all__ = ["KEY", "Key", "RunRecord", "Store"]


#: What tells two runs apart: instance, seed, policy, limit, workers, version, config.
Key = tuple[str, int, str, float, int, str, str]
#: ... and their names.
KEY = ("instance", "seed", "policy", "limit", "workers", "version", "config")


class RunRecord(BaseModel):
    """What one run came to; null is what is not known, all of the second part where ``error`` says why.

    Weights are ``weight`` of a Placement: placed weight of all priorities as one sum, in micro-nodes.

    Parameters
    ----------
    instance
        Family with its options, or path, as it was typed.
    seed
        Of the family's chance; of the policy's or the solver's where the instance is in files.
    policy
        What decided: a policy or a method.
    limit
        Seconds of the whole call of a method.
    workers
        Solver threads of a method.
    version
        Of placer.
    config
        First digits of the SHA-256 of the policy's configuration; empty: its defaults.
    nodes, pending
        Nodes and pending pods of the instance.
    placed_pods
        How many of these got a node.
    planted_weight, placed_weight
        Of the planted placement, where there is one, and of the one found.
    placed_over_planted
        Their quotient; above 1 where priorities, or jobs beyond the planted ones, let more be placed than was planted.
    weight_bound, weight_gap, weight_proved_by
        What no placement exceeds; |bound - value| / max(1, |value|); who proved it.
    objective
        Values, bounds and gaps in the order they are compared.
    violations
        Rule to how often it is broken; only what is broken, which methods never do.
    verdict, termination
        As in a Placement; of a policy that breaks a rule there is no verdict.
    seconds_to_first
        From the beginning of the call to its first answer; not of a policy, which has one answer.
    seconds
        Of the whole call, reading to writing.
    peak_memory_mib
        The most that the process and the ones it started held at once, in MiB: the sum of their high-water marks.
    notes
        What the configuration of a policy says and is not mimicked.
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
    weight_bound: int | None = None
    weight_gap: float | None = None
    weight_proved_by: str | None = None
    objective: list[ValuePart] = []
    violations: dict[str, int] = {}
    verdict: Verdict | None = None
    termination: Termination | None = None
    seconds_to_first: float | None = None
    seconds: float | None = None
    peak_memory_mib: float | None = Field(default=None, alias="peakMemoryMiB")
    notes: list[str] = []
    error: str | None = None

    @property
    def key(self) -> Key:
        """What tells it apart."""
        return self.instance, self.seed, self.policy, self.limit, self.workers, self.version, self.config

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, names in camel case."""
        return self.model_dump(mode="json", by_alias=True)

    def text(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps(self.as_dict())


EXPECTED = "a line of placer sweep"


class Store:
    """A file of lines.

    Nothing is written before the first new line. A last line that was cut off (the sweep was killed while it wrote)
    counts for nothing, and the next line takes its place; lines of other sweeps stay as they are.

    Parameters
    ----------
    path
        The file; it need not be there.
    keys
        Of the runs that are wanted: lines of other runs are of no interest.

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
        try:
            texts = self._path.read_bytes().splitlines(keepends=True) if self._path.exists() else []
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
        for number, text in enumerate(texts, start=1):
            if number == len(texts) and not text.endswith(b"\n") and _begins_like_ours(text):
                break
            self._good += len(text)
            line = self._line(number, text, wanted)
            if line is not None:
                self.known[line.key] = line

    def _line(self, number: int, text: bytes, wanted: set[Key]) -> RunRecord | None:
        """Read a line, None where it belongs to another sweep."""
        try:
            value: dict[str, Any] = json.loads(text)
            ours = tuple(value[name] for name in KEY) in wanted
        except (ValueError, KeyError, TypeError):
            raise self._fault(number, "", repr(text[:60].decode(errors="replace")), EXPECTED) from None
        try:
            return RunRecord.model_validate(value) if ours else None
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise self._fault(number, field, repr(first["input"])[:60], first["msg"]) from None

    def _fault(self, number: int, field: str, found: str, expected: str) -> BadInstance:
        return BadInstance([Fault(str(self._path), None, f"line {number}", field, found, expected)])

    def add(self, line: RunRecord) -> None:
        """Write a line, at once and whole.

        Raises
        ------
        UsageError
            The file cannot be written.
        """
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


def _begins_like_ours(text: bytes) -> bool:
    """Whether it may be a line of ours that was cut off; another file's text is never thrown away."""
    head = b'{"instance": '
    return text.startswith(head) or head.startswith(text)
