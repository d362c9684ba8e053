"""The service in a process of its own: of this checkout or another, by a command of the caller."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from app.demo.service import ROOT, ServiceProcess

SERVE = ("-m", "app.cli", "serve")


class Checkout(ServiceProcess):
    """``command`` are arguments of the interpreter; a port follows them, and the data folder is in
    the environment. Another checkout is run by its own ``.venv``, or by ours where it has none."""

    def __init__(
        self,
        data: Path,
        root: Path = ROOT,
        command: Sequence[str] = SERVE,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data, port=None, **(settings or {}))
        self._root, self._command = root, command

    def start(self) -> Self:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [interpreter(self._root), *self._command, "--port", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(self._root) | {"PURSE_DATA": str(self.data)} | self._settings,
            )
        return self


def interpreter(root: Path) -> str:
    own = root / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def environment(root: Path) -> dict[str, str]:
    """The caller's without its own settings; modules are found in ``root`` alone."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PURSE_") and name != "DATABASE_URL"
    }
    here = {"PYTHONPATH": f"{root}{os.pathsep}{root / 'client'}", "PYTHONSAFEPATH": "1"}
    return inherited | here


def processor_seconds(pid: int) -> float:
    """What a process has used so far (Linux): tells its own work from that of its neighbours."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
