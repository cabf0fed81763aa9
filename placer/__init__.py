"""placer: a constraint-optimisation batch placer for Kubernetes.

For notebooks::

    instance = placer.read("cluster.json")
    result = placer.solve(instance, time_limit="20s")
    print(result.summary())
    result.save("placement.yaml")

What takes long to import (numpy, the solver, the readers) is imported when it is used.
"""

from __future__ import annotations

from placer.base.version import __version__

__all__ = [
    "Model",
    "__version__",
    "audit",
    "compare",
    "defrag",
    "explain",
    "generate",
    "plot",
    "preempt",
    "read",
    "read_placement",
    "repair",
    "report",
    "score",
    "solve",
    "verify",
]

TYPE_CHECKING = False  # that of ``typing``, whose import takes longer than this whole package
if TYPE_CHECKING:
    from typing import Any

    from placer.api import (
        audit,
        compare,
        defrag,
        explain,
        generate,
        plot,
        preempt,
        read,
        repair,
        report,
        score,
        solve,
        verify,
    )
    from placer.model import Model
    from placer.problem.reading import read_placement

#: Names that are not in ``api``, and the modules that have them.
_ELSEWHERE = {"Model": "model", "read_placement": "problem.reading"}


def __getattr__(name: str) -> Any:
    """Import a function when it is first asked for: an interrupt before finds ``placer.cli`` in charge."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'api')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
