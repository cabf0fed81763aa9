"""The commands ``generate``, ``compare``, ``sweep`` and ``plot``: their flags and their output."""
