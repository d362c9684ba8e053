"""What a machine may run out of: space on its disk, file descriptors, memory."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.errors import OutOfRoom

#: The error numbers of a machine that has no disk space, memory or file descriptor left, or whose
#: disk fails.
NO_ROOM = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE),
        *(errno.ENOMEM, errno.EIO, errno.EROFS),
    }
)
#: A disk with fewer free bytes counts as full for records, so that the ledger can go on writing.
LEAST_FREE = 16 * 2**20


@contextmanager
def room() -> Iterator[None]:
    """Raises OutOfRoom in place of an OSError that says that the machine has run out of something.

    The text names neither files nor numbers.
    """
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise OutOfRoom("the machine has no room for it now") from error
        raise


def has_room(folder: Path) -> bool:
    """True if files can be written to ``folder``: it is accessible and its disk is not full."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return False
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize >= LEAST_FREE
