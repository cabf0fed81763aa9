"""placer: a constraint-optimisation batch placer for Kubernetes.

For notebooks::

    instance = placer.read("cluster.json")
    result = placer.solve(instance, time_limit="20s")
    print(result.summary())
    result.save("placement.yaml")

What takes long to import (numpy, the solver, the readers) is imported when it is used.
"""

from __future__ import annotations

import sys
from types import ModuleType

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
    from placer.problem.result import Result

#: Names that are not in ``api``, and the modules that have them.
_ELSEWHERE = {"Model": "model", "__version__": "version", "read_placement": "read"}


def _form(result: Result, name: str, *arguments: Any) -> Any:
    from importlib import import_module

    return getattr(import_module("placer.api"), name)(result, *arguments)


class _Package(ModuleType):
    """The package, in which a name that a function and a module share is the function's.

    A module's own ``__getattr__`` (PEP 562) would not do, because it is asked only for names that are not there: when
    anything imports ``placer.solve``, the import system sets that module as the attribute ``solve`` of the package, and
    ``placer.solve(instance)`` would call a module. Importing the functions at once would do, but then every command
    imports all of placer first, and an interrupt meanwhile is a traceback. So setting an attribute is what is changed,
    and for that Python wants a class.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a name; the import system sets each module that it has imported, also those called like a function.

        A Result learns here how it is shown and saved, because what does that is above ``result``.
        """
        if isinstance(value, ModuleType):
            if name == "result":
                value.Result.form = staticmethod(_form)
            if name in __all__:
                return
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Import a function when it is asked for: an interrupt before finds ``placer.cli`` in charge."""
        if name not in __all__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = getattr(import_module(f"{self.__name__}.{_ELSEWHERE.get(name, 'api')}"), name)
        super().__setattr__(name, found)
        return found

    def __dir__(self) -> list[str]:
        return __all__


sys.modules[__name__].__class__ = _Package
