"""Who may say what: every process has a certificate, and its organizational unit is its role.

Dask takes any certificate of the authority for any role. Here a scheduler hears from workers what
workers say and from clients what clients say; a worker hears its scheduler alone. That keeps order
and is no wall: Dask unpickles a message before anybody can look at it, so whoever holds a key of
the cluster can run code in it.
"""

import logging
from enum import StrEnum
from pathlib import Path
from typing import Any

from distributed import Scheduler, Security, Worker
from distributed.comm.core import Comm, CommClosedError

log = logging.getLogger("distributed.roles")


class Role(StrEnum):
    SCHEDULER = "scheduler"
    WORKER = "worker"
    CLIENT = "client"


#: The messages that open a conversation with a scheduler, of whom they are taken. What asks
#: for code to be run there, or for data to be read or placed through it, is taken from nobody.
HEARD = {
    Role.CLIENT: frozenset({"register-client", "identity", "ncores", "cancel", "close"}),
    Role.WORKER: frozenset({"register-worker", "heartbeat_worker", "unregister", "close"}),
    Role.SCHEDULER: frozenset[str](),
}


def security_of(files: tuple[Path | None, Path | None, Path | None]) -> Security | None:
    """TLS with the files of the authority, the certificate and the key; None if none is set.

    Encrypted or not at all, and the same certificate whatever Dask takes the process for.
    Raises: ValueError if only some of the three are set.
    """
    authority, certificate, key = files
    if authority is None and certificate is None and key is None:
        return None
    if authority is None or certificate is None or key is None:
        raise ValueError("an authority, a certificate and a key go together")
    by_role = {
        f"tls_{role}_{kind}": str(file)
        for role in Role
        for kind, file in (("cert", certificate), ("key", key))
    }
    return Security(require_encryption=True, tls_ca_file=str(authority), **by_role)


def role_of(comm: Comm) -> Role | None:
    """The role in the certificate at the other end; None where there is none that is known."""
    subject = (comm.extra_info.get("peercert") or {}).get("subject", ())
    units = [value for rdn in subject for name, value in rdn if name == "organizationalUnitName"]
    return Role(units[0]) if len(units) == 1 and units[0] in set(Role) else None


class GuardedScheduler(Scheduler):
    """Hears of each role what is that role's to say; without encryption, what anyone's is."""

    def handle_comm(self, comm: Comm) -> Any:
        if self.security.require_encryption:
            role = role_of(comm)
            heard = HEARD[role] if role is not None else frozenset[str]()
        else:
            role, heard = None, HEARD[Role.CLIENT] | HEARD[Role.WORKER]
        return super().handle_comm(_listening(comm, role, heard))


class GuardedWorker(Worker):
    """Hears its scheduler alone; without encryption, anybody on this machine."""

    def handle_comm(self, comm: Comm) -> Any:
        if self.security.require_encryption and role_of(comm) is not Role.SCHEDULER:
            log.warning("refused: workers hear their scheduler alone")
            comm.abort()
        return super().handle_comm(comm)


def _listening(comm: Comm, role: Role | None, heard: frozenset[str]) -> Comm:
    """The connection, which closes at the first message that opens another conversation."""
    read = comm.read

    async def checked(*args: Any, **kwargs: Any) -> Any:
        message = await read(*args, **kwargs)
        # Inside a conversation messages come in lists.
        if isinstance(message, dict) and "op" in message and message["op"] not in heard:
            log.warning("refused: %s is not for a %s to say", message["op"], role or "stranger")
            comm.abort()
            raise CommClosedError("not yours to say")
        return message

    comm.read = checked  # type: ignore[method-assign]
    return comm
