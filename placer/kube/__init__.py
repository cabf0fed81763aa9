"""Schemas of Kubernetes objects, one file per API group or project, and the table of kinds.

A schema of a whole object ends with ``Manifest``, a part with ``Entry`` where the problem has a word of that name.
"""
