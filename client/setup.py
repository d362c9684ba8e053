"""Puts the modules of the service that hold the rules of uploads into the wheel, as data.

``privypurse check`` runs them in a process of its own; nothing of the client imports them.
"""

from pathlib import Path
from shutil import copy

from setuptools import setup
from setuptools.command.build_py import build_py

#: The modules that ``app/check.py`` imports, below the root of the checkout.
RULES = (
    "accounting/*.py",
    "mechanisms/__init__.py",
    "mechanisms/model/*.py",
    "storage/__init__.py",
    "storage/errors.py",
    "storage/files/*.py",
    "storage/ingest/*.py",
    "app/__init__.py",
    "app/check.py",
    "app/contract/*.py",
    "app/usecases/__init__.py",
    "app/usecases/file_check.py",
)


def copy_rules(root: Path, folder: Path) -> None:
    """Copy the modules from a checkout. Raises: FileNotFoundError outside of one."""
    for pattern in RULES:
        files = sorted(root.glob(pattern))
        if not files:
            raise FileNotFoundError(f"{root / pattern}: build the client inside a checkout")
        for file in files:
            target = folder / file.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy(file, target)


class WithRules(build_py):
    """Builds the package, with the rules in its folder ``rules``."""

    def run(self) -> None:
        super().run()
        # A client that is installed in editable mode imports the rules for uploads from its
        # checkout, so no copy is needed.
        if not self.editable_mode:
            root = Path(__file__).resolve().parent.parent
            copy_rules(root, Path(self.build_lib) / "privypurse/rules")


if __name__ == "__main__":
    setup(cmdclass={"build_py": WithRules})
