"""The commands ``generate``, ``compare`` and ``sweep``: their flags, and what they print.

Belongs here: what is asked for and how the answer is shown. Does not: the work itself, which a notebook can call, too.
"""
