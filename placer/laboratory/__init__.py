"""The laboratory: instances from a seed, other schedulers' policies, and both kinds of deciders side by side.

Belongs here: what measures and compares, and its commands (``generate``, ``compare``, ``sweep``). Does not: anything
that deciding, judging or a pass in a cluster needs, because only the command line imports this room.
"""
