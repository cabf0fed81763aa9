"""Volcano's greedy: jobs by queue, priority and share; HyperNodes tier by tier, each tried and rolled back.

Belongs here: what ``actions/allocate`` and the plug-ins do that decide where pending pods go. Does not: preemption and
reclaim, controllers, the admission of PodGroups (``enqueue``, ``overcommit``), which in a queue that stands still
delays groups for a session or more: here all that wait have been let in.
"""

from placer.policies.volcano.session import Session
from placer.policies.volcano.settings import DEFAULT, DEFAULT_LABELS

__all__ = ["DEFAULT", "DEFAULT_LABELS", "Session"]
