"""placer: a constraint-optimisation batch placer for Kubernetes."""

__version__ = "0.1.0"
