"""Other schedulers' greedy, faithfully: one loop over one state, and the plug-ins that each policy hands to it.

Policies mimic: they may break our rules, and others count the violations (models/policies.md).
"""
