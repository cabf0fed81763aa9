"""Schemas of Kubernetes objects, one file per API group or project, and the table of kinds (``kinds``).

Here belongs the name of a field, its type and the limits that the API server or the CRD puts on it. Its *meaning* for a
placement (defaults that depend on other objects, findings, expansion) belongs to ``placer.instance``; reading text
belongs to ``placer.manifests``.

A schema of a whole object is called after its kind and ``Manifest``: ``PodManifest`` is a Pod as it is written, and
:class:`placer.instance.Pod` its meaning for the problem. Parts of an object bear the name of the API's type, and end
with ``Entry`` where the problem has a word of that name: ``TaintEntry`` is one entry of a node's ``taints``.
"""
