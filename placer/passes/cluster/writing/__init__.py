"""Writes to a cluster: bindings, evictions, conditions, Events, status of PodGroups, the record."""
