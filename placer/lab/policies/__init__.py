"""Other schedulers' greedy (models/policies.md): one loop over one state, and the plug-ins that each policy hands to
it.
"""
