"""The laboratory: generated instances, other schedulers' policies, comparisons and sweeps, and their commands.

Only the command line imports it: deciding, judging and passes need none of it.
"""
