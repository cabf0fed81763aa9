"""Execute ``docs/notebook.ipynb`` and write it with its outputs: ``python -m tests.write_notebook``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"


def executed() -> Any:
    """Execute the notebook in its folder, in a kernel of its own; an error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = {"metadata": {"path": str(NOTEBOOK.parent)}}
    # What a cell prints arrives in as many pieces as the machine has time for: they are put together.
    client = NotebookClient(notebook, timeout=600, resources=folder, coalesce_streams=True)
    client.execute()
    for cell in notebook.cells:
        cell.metadata.clear()  # when each cell began and ended
    return notebook


def main() -> None:
    """Write it."""
    import nbformat

    notebook = executed()
    notebook.metadata["language_info"] = {"name": "python"}  # not the version that it happened to run with
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
