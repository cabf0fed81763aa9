"""placer: a constraint-optimisation batch placer for Kubernetes.

For notebooks::

    instance = placer.read("cluster.json")
    result = placer.solve(instance, time_limit=20)
    violations = placer.verify(instance, result.placement)
    values = placer.score(instance, result.placement)

What takes long to import (numpy, the solver, the readers) is imported when it is used.
"""

from __future__ import annotations

import sys
from types import ModuleType

from placer.version import __version__

__all__ = ["__version__", "read", "read_placement", "score", "solve", "verify"]

TYPE_CHECKING = False  # that of ``typing``, whose import takes longer than this whole package
if TYPE_CHECKING:
    from typing import Any

    from placer.read import read, read_placement
    from placer.result import Result
    from placer.score import score
    from placer.solve import solve
    from placer.verify import verify

#: Function to the module that has it. Nothing is imported before one is asked for: an interrupt while a command starts
#: finds ``placer.cli`` in charge, and not this package half imported.
_MODULES = {"read": "read", "read_placement": "read", "score": "score", "solve": "solve", "verify": "verify"}


def _in_html(result: Result) -> str:
    from placer.summary import as_html

    return as_html(result)


class _Package(ModuleType):
    """The package, in which a name that a function and its module share is the function's.

    A module's own ``__getattr__`` (PEP 562) would not do, because it is asked only for names that are not there: when
    anything imports ``placer.solve``, the import system sets that module as the attribute ``solve`` of the package, and
    ``placer.solve(instance)`` would call a module. Importing the functions at once would do, but then every command
    imports all of placer first, and an interrupt meanwhile is a traceback. So setting an attribute is what is changed,
    and for that Python wants a class.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a name; the import system sets each module that it has imported, also those called like a function.

        A Result learns here how it looks in a notebook, because ``summary`` is above ``result`` and needs ``rich``.
        """
        if isinstance(value, ModuleType):
            if name == "result":
                value.Result.in_html = _in_html
            value = getattr(value, name) if name in _MODULES else value
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Import a function when it is asked for."""
        if name not in _MODULES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{self.__name__}.{_MODULES[name]}"), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
