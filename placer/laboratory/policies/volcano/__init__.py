"""Volcano's greedy: jobs by queue, priority and share; HyperNodes tier by tier, each tried and rolled back.

Belongs here: what the actions enqueue, allocate and backfill and the plug-ins do that decide which pending pods go
where. Does not: preemption and reclaim, controllers.
"""
