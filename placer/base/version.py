"""The version of placer, and of its documents."""

__version__ = "0.1.0"

API_VERSION = "placer.dev/v1alpha1"  #: of every document that placer writes and that is none of Kubernetes
