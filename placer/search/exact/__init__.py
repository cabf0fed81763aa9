"""The exact method: one CP-SAT model of counts, solved value after value, with proofs.

``models/exact.md`` has the formulation, and a table of the modules.
"""
