"""Adds the executable to a wheel for one platform. Without one, the wheel has only the package."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ExecutableHook(BuildHookInterface[Any]):
    """Reads BATCHSCAN_WHEEL_EXECUTABLE and BATCHSCAN_WHEEL_TAG."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built."""
        executable = os.environ.get("BATCHSCAN_WHEEL_EXECUTABLE")
        if executable:
            build_data["pure_python"] = False
            build_data["tag"] = os.environ["BATCHSCAN_WHEEL_TAG"]
            build_data["shared_scripts"][executable] = Path(executable).name
