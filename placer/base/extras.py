"""How to get libraries that not all need: extras of the distribution."""

from __future__ import annotations

#: Name of the distribution; ``placer`` on PyPI is another project.
DISTRIBUTION = "kube-placer"


def how_to_install(extra: str) -> str:
    """Say how to install placer with an extra of ``pyproject.toml``, from its sources or from their address."""
    address = "git+https://ADDRESS-OF-ITS-REPOSITORY"
    return (
        f"pip install '.[{extra}]' in the folder of its sources, or pip install '{DISTRIBUTION}[{extra}] @ {address}'"
    )
