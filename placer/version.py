"""The version of placer: of its command line, its documents and its answers."""

__all__ = ["__version__"]

__version__ = "0.1.0"
