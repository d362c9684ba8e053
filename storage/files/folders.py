"""Folders of mode 0700, files of mode 0600, and their synchronization with the disk."""

import os
import shutil
from pathlib import Path
from typing import BinaryIO


def make_folder(path: Path) -> None:
    """Create a folder of mode 0700, for any umask. Does not change an existing folder."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)


def create_file(path: Path) -> BinaryIO:
    """A new file of mode 0600, open for writing. Raises: FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "wb")


def sync(path: Path) -> None:
    """Make the content of a file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_folder(path: Path) -> None:
    """Remove a folder and its content, or do nothing if it does not exist."""
    if path.exists():
        shutil.rmtree(path)
