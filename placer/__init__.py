"""placer: a constraint-optimisation batch placer for Kubernetes.

For notebooks::

    instance = placer.read("cluster.json")
    result = placer.solve(instance, time_limit=20)
    violations = placer.verify(instance, result.placement)
    values = placer.score(instance, result.placement)

What takes long to import (numpy, the solver, the readers) is imported when it is used.
"""

__version__ = "0.1.0"

# These functions have the names of their modules. The modules are imported here, once, so that the names stay the
# functions': only the first import of a module sets its name in the package.
from placer.read import read, read_placement
from placer.result import Result
from placer.score import score
from placer.solve import solve
from placer.verify import verify


def _in_html(result: Result) -> str:
    from placer.summary import as_html

    return as_html(result)


Result.in_html = _in_html

__all__ = ["__version__", "read", "read_placement", "score", "solve", "verify"]
