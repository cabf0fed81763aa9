"""The method for real clusters: large neighbourhood search, and the whole model where it is small enough.

``models/decomposed.md`` has a table of its modules; ``lexicographic`` calls them value by value.
"""

from placer.search.decomposed.lexicographic import search

__all__ = ["search"]
