"""Schemas of Kubernetes objects, one file per API group or project, and the table of kinds (``kinds``).

A schema of a whole object is called after its kind and ``Manifest``. Parts bear the name of the API's type, and end
with ``Entry`` where the problem has a word of that name.
"""
