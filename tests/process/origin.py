"""A repository for readers to clone: this tree, and later versions of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT

MIGRATION = """import sqlalchemy as sa
from alembic import op

revision = "9000"
down_revision = "{last}"


def upgrade() -> None:
    op.create_table("later", sa.Column("id", sa.Integer, primary_key=True))
"""


class Origin:
    """A repository in a folder; ``commit`` publishes the changes."""

    def __init__(self, folder: Path) -> None:
        if not (ROOT / ".git").exists():
            pytest.skip("needs a git checkout")
        self.folder = folder
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, names.decode().split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    def git(self, *arguments: str) -> None:
        person = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *person, *arguments], cwd=self.folder, check=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=A version.")

    def replace(self, file: str, old: str, new: str) -> None:
        text = (self.folder / file).read_text("utf-8")
        assert text.count(old) == 1, f"{old} is not in {file} once"
        (self.folder / file).write_text(text.replace(old, new), "utf-8")

    def change_kernels(self) -> None:
        """Change the kernels of the next version."""
        kernels = self.folder / "mechanisms" / "kernels" / "graph.py"
        kernels.write_text(kernels.read_text("utf-8") + "\n# Another one.\n", "utf-8")

    def migrate(self) -> None:
        """Add a migration to the next version, with a table ``later``."""
        *_, last = sorted((self.folder / "storage/migrations/versions").glob("[0-9]*.py"))
        text = MIGRATION.format(last=last.name[:4])
        (last.parent / "9000_later.py").write_text(text, "utf-8")
