"""Passes over a cluster: reading, planning, writing, the loop, its options and metrics."""
