"""Volcano's greedy: jobs by queue, priority and share; HyperNodes tier by tier, each tried and rolled back.

Belongs here: what ``actions/allocate`` and the plug-ins do that decide where pending pods go. Does not: preemption and
reclaim, the admission of PodGroups (``enqueue``, ``overcommit``: an instance does not carry ``minResources``),
controllers.
"""

from placer.policies.volcano.session import Session
from placer.policies.volcano.settings import DEFAULT, DEFAULT_LABELS

__all__ = ["DEFAULT", "DEFAULT_LABELS", "Session"]
