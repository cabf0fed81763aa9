"""How to get libraries that not all need: extras of the distribution."""

from __future__ import annotations

__all__ = ["DISTRIBUTION", "how_to_install"]

#: Name of the distribution; ``placer`` on PyPI is another project.
DISTRIBUTION = "kube-placer"


def how_to_install(extra: str) -> str:
    """Say how to install placer with an extra, from its sources or from where they are kept.

    Parameters
    ----------
    extra
        One of ``project.optional-dependencies`` of ``pyproject.toml``.
    """
    address = "git+https://ADDRESS-OF-ITS-REPOSITORY"
    return (
        f"pip install '.[{extra}]' in the folder of its sources, or pip install '{DISTRIBUTION}[{extra}] @ {address}'"
    )
