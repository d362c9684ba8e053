"""Roles of the processes of a cluster. The organizational unit of a certificate is its role.

This check is not a security boundary. Dask unpickles a message before any check, so every holder
of a key of the cluster can run code in it. Dask itself accepts each certificate for each role. Here
a scheduler accepts the messages of workers from workers, and those of clients from clients only. A
worker accepts messages from its scheduler only.
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


#: The operations that may open a conversation with a Dask scheduler, by the role of the sender.
#: Operations that run code there, or read or place data through it, are refused from every role.
HEARD = {
    Role.CLIENT: frozenset({"register-client", "identity", "ncores", "cancel", "close"}),
    Role.WORKER: frozenset({"register-worker", "heartbeat_worker", "unregister", "close"}),
    Role.SCHEDULER: frozenset[str](),
}


def security_of(files: tuple[Path | None, Path | None, Path | None]) -> Security | None:
    """TLS with the files of the authority, the certificate and the key; None if none is set.

    All connections are encrypted. Dask gets the same certificate for each of its roles.
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
    """The role in the certificate of the peer; None without a known role."""
    subject = (comm.extra_info.get("peercert") or {}).get("subject", ())
    units = [value for rdn in subject for name, value in rdn if name == "organizationalUnitName"]
    return Role(units[0]) if len(units) == 1 and units[0] in set(Role) else None


class GuardedScheduler(Scheduler):
    """Accepts from each role its own messages; without encryption, those of both roles."""

    def handle_comm(self, comm: Comm) -> Any:
        if self.security.require_encryption:
            role = role_of(comm)
            heard = HEARD[role] if role is not None else frozenset[str]()
        else:
            role, heard = None, HEARD[Role.CLIENT] | HEARD[Role.WORKER]
        return super().handle_comm(_listening(comm, role, heard))


class GuardedWorker(Worker):
    """Accepts messages from its scheduler only; without encryption, from every sender."""

    def handle_comm(self, comm: Comm) -> Any:
        if self.security.require_encryption and role_of(comm) is not Role.SCHEDULER:
            log.warning("refused: workers hear their scheduler alone")
            comm.abort()
        return super().handle_comm(comm)


def _listening(comm: Comm, role: Role | None, heard: frozenset[str]) -> Comm:
    """The connection, which aborts at the first message that ``heard`` does not contain."""
    read = comm.read

    async def checked(*args: Any, **kwargs: Any) -> Any:
        message = await read(*args, **kwargs)
        # Only the first message of a conversation is a dict with an operation, so only this one is
        # checked. Later messages are lists.
        if isinstance(message, dict) and "op" in message and message["op"] not in heard:
            log.warning("refused: %s is not for a %s to say", message["op"], role or "stranger")
            comm.abort()
            raise CommClosedError("not yours to say")
        return message

    comm.read = checked  # type: ignore[method-assign]
    return comm
