"""The exact method: one CP-SAT model of counts, solved value after value, with proofs.

``node_sets`` and ``variables`` count and decide, ``calls`` and ``zones`` have pods that call each other and NUMA zones,
``constraints`` and ``neighbour_rows`` the rules, ``objective`` and ``packing`` the values, ``search`` the model and its
search. ``pooled_bundles``, ``pooled_program`` and ``pooled_model`` are the smaller model where everything is placed,
``readiness`` asks for one group alone, ``disturbing`` evicts and moves running pods.
"""
