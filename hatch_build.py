"""Hook of the build backend: the project's addresses in the metadata of the package."""

from __future__ import annotations

import os
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    """Names the repository that a workflow on GitHub builds the package from; elsewhere, the package has no addresses.

    A source distribution states the addresses itself, and hatchling reads them from there.
    """

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, object]) -> None:
        """Set `urls`. A workflow that builds this package as a dependency of another project does not own it."""
        names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_WORKSPACE")
        server, name, workspace = (os.environ.get(variable) for variable in names)
        if server and name and workspace and Path(workspace).resolve() == Path(self.root).resolve():
            repository = f"{server}/{name}"
            metadata["urls"] = {
                "Homepage": repository,
                "Documentation": f"{repository}/tree/HEAD/docs",
                "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
                "Issues": f"{repository}/issues",
                "Source": repository,
            }
