"""Who can be asked to decide, by name: policies and methods alike; and how much memory a process took.

Belongs here: what ``compare`` and ``sweep`` share, the names and the call (``asking``), the measuring (``memory``).
Does not: how a policy or a method decides (``policies``, ``solve``), judging what comes out.
"""

from placer.deciding.asking import NAMES, Asked, ask, configuration_of
from placer.deciding.memory import PeakOfTree, high_water

__all__ = ["NAMES", "Asked", "PeakOfTree", "ask", "configuration_of", "high_water"]
