"""NUMA zones in the methods (C10): moves that only zones need.

``ejection_chains`` over ``zone_bins`` make room in a zone, ``creation_order`` swaps pods so that they may be bound by
creation time, ``binding_order`` orders the pods of a node in the end. ``models/numa.md`` explains all of it.
"""
