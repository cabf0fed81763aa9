"""Schemas of Kubernetes objects, one file per API group or project, and the table of kinds.

Here belongs the name of a field, its type and the limits that the API server or the CRD puts on it. Its *meaning* for a
placement (defaults that depend on other objects, findings, expansion) belongs to ``placer.instance``; reading text
belongs to ``placer.manifests``.

A schema of a whole object is called after its kind and ``Manifest``: ``PodManifest`` is a Pod as it is written, and
:class:`placer.instance.Pod` its meaning for the problem. Parts of an object bear the name of the API's type, and end
with ``Entry`` where the problem has a word of that name: ``TaintEntry`` is one entry of a node's ``taints``.

=====================  =============================================================================================
file                   kinds
=====================  =============================================================================================
``base``               quantities, metadata, selectors
``reader``             text to an object of a schema, or every fault of it
``pod``                v1 Pod and the pod template
``core``               the rest of v1, PriorityClass
``volcano``            PodGroup, Queue, Job, HyperNode of Volcano
``scheduler_plugins``  PodGroup of scheduler-plugins, AppGroup, NetworkTopology, NodeResourceTopology
``apps``               Deployment, StatefulSet, ReplicaSet, batch Job
``job_sets``           JobSet; ``leader_worker_sets``: LeaderWorkerSet
``scheduling``         PodGroup and Workload of Kubernetes itself
``kai``                PodGroup of KAI
``budgets``            PodDisruptionBudget
``policy``             our own Policy
``marks``              labels, annotations and fields of other systems, and their meaning to placer
``field_uses``         use of each field: read, ignored, refused, or it limits nothing
``unread_kinds``       kinds that are not read, and that make pods or limit them
``kinds``              which model reads which apiVersion and kind, its kubectl names, all its fields
=====================  =============================================================================================
"""
