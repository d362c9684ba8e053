"""``privypurse certificate``, ``certificate-keys`` and ``verify-certificate``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from privypurse.certificates import CertificateInvalid, verify_certificate
from privypurse.cli.documents import print_json, read_object
from privypurse.cli.service import fail, service


def certificate(
    context: typer.Context,
    query_id: Annotated[str, typer.Argument(help="Id of an own answered query.")],
) -> None:
    """Print the certificate of an answer: what the service claims about it, signed."""
    with service(context) as purse:
        typer.echo(purse.certificate(query_id), nl=False)


def dataset_certificate(
    context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the dataset.")]
) -> None:
    """Print the certificate of a dataset (owner, auditor); it shows no released value."""
    with service(context) as purse:
        typer.echo(purse.dataset_certificate(name), nl=False)


def certificate_keys(context: typer.Context) -> None:
    """Print the public keys of all certificates; keep them to verify offline."""
    with service(context) as purse:
        print_json(purse.certificate_keys())


def verify(
    file: Annotated[Path, typer.Argument(help="File of the certificate.")],
    key: Annotated[Path, typer.Option(help="File that `certificate-keys` printed.")],
) -> None:
    """Verify a certificate offline and print what the service claims; status 1 if it is changed."""
    keys = read_object(key)
    try:
        verified = verify_certificate(file.read_bytes(), keys)
    except OSError as error:
        fail(f"{file}: {error.strerror}", 2)
    except CertificateInvalid as error:
        fail(f"{file}: {error}")
    print_json(verified.statement)
    typer.echo(f"The signature of key {verified.key_id} is valid.", err=True)


COMMANDS: dict[str, Callable[..., None]] = {
    "certificate": certificate,
    "certificate-keys": certificate_keys,
    "verify-certificate": verify,
}
