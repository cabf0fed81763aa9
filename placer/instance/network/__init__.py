"""Who calls whom, and what a call costs: AppGroup and NetworkTopology (C8, C9, O3).

Belongs here: the values (``model``), how many pods of a workload are where (``spread``), and the pure functions that
read the objects: ``api_groups`` (which of several of one name counts), ``app_groups`` (workloads and dependencies),
``members`` (which pod is of which workload), ``topology`` (the chosen NetworkTopology and list), ``notices`` (findings
about both), ``standing`` (what bound pods break). Does not: what breaks a rule (``placer.verify``), sorting orders and
controllers' statuses, any decision.
"""

from placer.instance.network.model import SAME_ZONE_COST, UNKNOWN_COST, AppGroup, Area, Dependency, Link, Network
from placer.instance.network.spread import Spread

__all__ = ["SAME_ZONE_COST", "UNKNOWN_COST", "AppGroup", "Area", "Dependency", "Link", "Network", "Spread"]
