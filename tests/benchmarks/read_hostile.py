"""How long the reader runs, and what memory it takes, on input of up to 64 MiB that it refuses: at most 20 s, 1 GiB.

Each input is read in a process of its own.

    python tests/benchmarks/read_hostile.py [NAME...]
"""

from __future__ import annotations

import gzip
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

SIZE = 60 * 2**20
WRONG = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"wrong"},"spec":{"overhead":{"cpu":"x"}}}'


def pod(index: int, spec: str = "", metadata: str = "") -> str:
    """One pod as short as can be."""
    return f'{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{index}"{metadata}}},"spec":{{{spec}}}}}'


def repeated(text: str, size: int = SIZE) -> str:
    """A text again and again."""
    return text * (size // len(text))


def numbered(make: Callable[[int], str], separator: str = ",", size: int = SIZE) -> str:
    """Texts with a number each, up to a size."""

    def until_full() -> Iterator[str]:
        length = 0
        for index in count():
            text = make(index)
            length += len(text) + len(separator)
            if length > size:
                return
            yield text

    return separator.join(until_full())


def listed(items: str) -> str:
    """A List of items."""
    return f'{{"apiVersion":"v1","kind":"List","items":[{items}]}}'


def pairs(start: int, number: int, value: str = '"{:x}"') -> str:
    """Keys and values, all distinct."""
    return ",".join(f'"k{index:x}":{value.format(index)}' for index in range(start, start + number))


def yaml_pods() -> str:
    """Ordinary pods in YAML, the last one wrong."""
    one = (
        "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: pod-{}\n    labels:\n      app: shop\n  spec:\n"
        "    containers:\n    - name: main\n      image: example.org/shop:1\n      resources:\n        requests:\n"
        "          cpu: 500m\n          memory: 1Gi\n"
    )
    return f"apiVersion: v1\nkind: List\nitems:\n{numbered(one.format, '')}- {WRONG}\n"


def yaml_documents(unread: str) -> str:
    """Pods in YAML that hold much which is not read, the last one wrong."""
    one = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p%d}}\nspec: {{}}\nx: {unread}\n---\n"
    return "".join(one % index for index in range(SIZE // len(one))) + WRONG


INPUTS: dict[str, Callable[[], str]] = {
    "json-ones": lambda: listed(repeated("1,") + "1"),
    "json-numbers": lambda: listed(repeated("12345678,") + "1"),
    "json-empty-lists": lambda: listed(repeated("[],") + "1"),
    "json-empty-objects": lambda: listed(repeated("{}         ,") + "1"),
    "json-containers": lambda: listed(pod(1, f'"containers":[{repeated("{},")}{{}}]')),
    "json-many-containers": lambda: listed(
        "".join(pod(n, f'"containers":[{repeated("{}        ,", 7 * 2**20)}{{}}]') + "," for n in range(8)) + WRONG
    ),
    "json-labels": lambda: listed(
        numbered(lambda n: pod(n, metadata=f',"labels":{{{pairs(n * 10**6, 300_000)}}}')) + "," + WRONG
    ),
    "json-quantities": lambda: listed(
        numbered(lambda n: pod(n, f'"overhead":{{{pairs(n * 10**6, 300_000, "{}")}}}')) + "," + WRONG
    ),
    "json-wrong-quantities": lambda: listed(numbered(lambda n: pod(n, f'"overhead":{{{pairs(0, 300_000, "-1")}}}'))),
    "json-small-pods": lambda: listed(numbered(pod) + "," + WRONG),
    "json-unknown-fields": lambda: listed(numbered(lambda n: pod(n, pairs(8 * n, 8))) + "," + WRONG),
    "json-many-unknown-fields": lambda: listed(numbered(lambda n: pod(n, pairs(n, 300_000, "1"))) + "," + WRONG),
    "json-unknown-items": lambda: listed(
        numbered(lambda n: pod(n, f'"volumes":[{repeated("{},", 6 * 2**20)}{{"x":1}}]')) + "," + WRONG
    ),
    "json-small-wrong-pods": lambda: listed(numbered(lambda n: pod(n, '"hostNetwork":1'))),
    "json-kinds": lambda: listed(numbered(lambda n: f'{{"apiVersion":"v1","kind":"K{n}","metadata":{{"name":"a"}}}}')),
    "json-documents": lambda: repeated('{"apiVersion":"v1","kind":"X"}\n'),
    "json-levels": lambda: "[" * SIZE,
    "json-string": lambda: listed(pod(1, f'"x":"{"a" * SIZE}"')),
    "json-truncated": lambda: listed(numbered(pod))[:-2],
    "yaml-ones": lambda: f"kind: List\napiVersion: v1\nitems: [{repeated('1,')}1]",
    "yaml-unread-ones": lambda: yaml_documents("[1, " + repeated("1, ", 7 * 2**20) + "1]"),
    "yaml-unread-numbers": lambda: yaml_documents("\n" + repeated("- 1234567\n", 6 * 2**20)),
    "yaml-unread-mappings": lambda: yaml_documents("\n" + repeated("- {a: b}\n", 6 * 2**20)),
    "yaml-empty-documents": lambda: repeated("---\n"),
    "yaml-documents": lambda: repeated("--- {apiVersion: v1, kind: X}\n"),
    "yaml-pods": yaml_pods,
    "yaml-keys": lambda: "".join(f"k{n}: 1\n" for n in range(4_000_000)),
    "yaml-string": lambda: f'apiVersion: v1\nkind: Pod\nx: "{"a" * SIZE}"',
    "yaml-anchors": lambda: "x:\n" + "".join(f"- &a{n} b\n" for n in range(3_500_000)),
    "yaml-laughs": lambda: "a: &a0 [x]\n" + "".join(f"b{n}: &a{n + 1} [{f'*a{n}, ' * 9}]\n" for n in range(30)),
    "yaml-tags": lambda: "".join(f"%TAG !a{n}! tag:x\n" for n in range(2_000_000)),
    "gzip-bomb": lambda: '{"a":"' + "a" * (500 * 2**20),
}


def read(path: Path) -> tuple[float, float, float, str]:
    """Seconds, those of the processor, MiB beyond what the process had before, and the first fault."""
    from placer.base.errors import BadInstance
    from placer.kube import manifests

    before, start, busy, said = peak(), time.perf_counter(), time.process_time(), "not refused"
    try:
        manifests.load([path])
    except BadInstance as error:
        said = str(error.faults[0]).partition("found ")[2]
    return time.perf_counter() - start, time.process_time() - busy, peak() - before, said


def peak() -> float:
    """Most memory this process ever had, in MiB; not inherited from its parent, as ``ru_maxrss`` is."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> None:
    """Read each input, print a line each."""
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or INPUTS:
            path = Path(folder) / "input"
            text = INPUTS[name]().encode()
            path.write_bytes(gzip.compress(text) if name.startswith("gzip") else text)
            del text
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, busy, memory, said = pool.apply(read, (path,))
            size = path.stat().st_size / 2**20
            print(
                f"{name:24} {size:5.1f} MiB {seconds:6.1f} s ({busy:.1f} busy) {memory:6.0f} MiB  {said[:90]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
