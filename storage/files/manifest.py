"""The manifest of a folder of arrays: names, types, sizes and salted digests of its files.

Danger: prepared arrays follow from the records alone, so a digest without salt would tell whether
guessed records are the stored ones. Each digest is SHA-256(salt ‖ bytes of the file). The salt, 32
random bytes, is only in the manifest and is destroyed with the files. It also hides the records in
the digest of the manifest, which leaves the folder.

    manifest.json   written with the arrays
    digests.json    only in folders of format 2, which were written without digests
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from secrets import token_bytes
from typing import Any

FORMAT, WITHOUT_DIGESTS = 3, 2
MANIFEST, DIGESTS = "manifest.json", "digests.json"
SALT_BYTES = 32


class DamagedFolder(RuntimeError):
    """A folder of arrays differs from its manifest, or has another kind or format."""


@dataclass(frozen=True)
class ArrayFile:
    """One array: its name, its file, its type and length, and the size and digest of the file."""

    name: str
    file: str
    dtype: str
    length: int
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of ``manifest.json``; in a folder of format 2 joined with ``digests.json``."""

    kind: str
    salt: bytes
    arrays: tuple[ArrayFile, ...]

    def encoded(self) -> bytes:
        values = {
            "format": FORMAT,
            "kind": self.kind,
            "salt": self.salt.hex(),
            "arrays": [asdict(array) for array in self.arrays],
        }
        return _encode(values)


def new_salt() -> bytes:
    return token_bytes(SALT_BYTES)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder. Raises: FileNotFoundError; DamagedFolder."""
    values = _decode(folder / MANIFEST)
    try:
        if values["format"] == WITHOUT_DIGESTS:
            digests = _decode(folder / DIGESTS)
            values["salt"] = digests["salt"]
            values["arrays"] = [
                {**entry, **digests["files"][entry["file"]]} for entry in values["arrays"]
            ]
        elif values["format"] != FORMAT:
            raise DamagedFolder(f"the folder is not in format {FORMAT}")
        arrays = tuple(ArrayFile(**entry) for entry in values["arrays"])
        return Manifest(values["kind"], bytes.fromhex(values["salt"]), arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFolder("a manifest lacks a value") from error


def manifest_digest(folder: Path) -> bytes:
    """The SHA-256 of the manifest, which binds every byte of the arrays and reveals none."""
    digest = sha256((folder / MANIFEST).read_bytes())
    if is_without_digests(folder):
        digest.update((folder / DIGESTS).read_bytes())
    return digest.digest()


def is_without_digests(folder: Path) -> bool:
    """True for a folder of format 2, whose manifest has no digests."""
    return bool(_decode(folder / MANIFEST).get("format") == WITHOUT_DIGESTS)


def digests_of(folder: Path) -> bytes:
    """The content of ``digests.json`` for a folder of format 2, from its files as they are now."""
    salt = new_salt()
    files = {
        file: {"size": (folder / file).stat().st_size, "sha256": salted_digest(salt, folder / file)}
        for file in files_of(folder)
    }
    return _encode({"salt": salt.hex(), "files": files})


def check_files(folder: Path) -> bytes:
    """Compare every file with the manifest. Returns the digest of the manifest.

    Reads all bytes of the folder. Raises: FileNotFoundError; DamagedFolder.
    """
    manifest = read_manifest(folder)
    for array in manifest.arrays:
        path = folder / array.file
        if path.stat().st_size != array.size or (
            salted_digest(manifest.salt, path) != array.sha256
        ):
            raise DamagedFolder("a file differs from its digest")
    return manifest_digest(folder)


def files_of(folder: Path) -> list[str]:
    """The files of arrays that the manifest of a folder names. Raises: DamagedFolder."""
    return [file for _, file, _, _ in layout_of(folder)[1]]


def layout_of(folder: Path) -> tuple[str, list[tuple[str, str, str, int]]]:
    """The kind of a folder of either format, and name, file, type and length of each array.

    Raises: FileNotFoundError; DamagedFolder.
    """
    values = _decode(folder / MANIFEST)
    try:
        if values["format"] not in (FORMAT, WITHOUT_DIGESTS):
            raise DamagedFolder(f"the folder is not in format {FORMAT}")
        entries = [
            (entry["name"], entry["file"], entry["dtype"], int(entry["length"]))
            for entry in values["arrays"]
        ]
        if any(Path(file).name != file for _, file, _, _ in entries):
            raise DamagedFolder("a manifest names a file outside its folder")
        return values["kind"], entries
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFolder("a manifest lacks a value") from error


def salted_digest(salt: bytes, path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, lambda: sha256(salt)).hexdigest()


def _encode(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=True, indent=1).encode()


def _decode(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise DamagedFolder("a manifest is not JSON") from error
    if not isinstance(values, dict):
        raise DamagedFolder("a manifest is not a JSON object")
    return values
