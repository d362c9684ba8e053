"""A folder of Parquet files: each file ``name.parquet`` directly in it is the table ``name``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from storage.errors import SourceFailed
from storage.sources.source import CHUNK, checked

SUFFIX = ".parquet"


class ParquetFolder:
    """The Parquet files of one folder; files of folders below it and links are no tables."""

    media_type = "application/vnd.apache.parquet"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tables(self) -> list[str]:
        """The names of the files without their suffix, sorted. Raises: SourceFailed."""
        try:
            with os.scandir(self._folder) as entries:
                files = [one.name for one in entries if one.is_file(follow_symlinks=False)]
        except OSError:
            raise SourceFailed("the folder of the source cannot be read") from None
        return sorted(name.removesuffix(SUFFIX) for name in files if name.endswith(SUFFIX))

    def read(self, table: str) -> Iterator[bytes]:
        """The bytes of the file of a table. Raises: SourceFailed."""
        # Danger: a name from a request could lead to another folder. So only names in the listing
        # of this folder are accepted, each of which is the name of a file.
        path = self._folder / (checked(table, self.tables()) + SUFFIX)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(handle, "rb") as stream:
                while chunk := stream.read(CHUNK):
                    yield chunk
        except OSError:
            raise SourceFailed("the file of the table cannot be read") from None
