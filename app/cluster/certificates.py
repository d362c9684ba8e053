"""Certificates for a cluster: an authority signs one certificate for each role.

The authority's key is never written to disk, so nobody can sign another certificate later. To
renew or revoke a certificate, replace the authority and all certificates.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from storage.files.folders import create_file, make_folder

ROLES = ("scheduler", "worker", "client")
LIFETIME = timedelta(days=3 * 365)


def make_certificates(folder: Path) -> None:
    """Write ``ca.pem``, and ``ROLE.pem`` and ``ROLE.key`` for every role, to a private folder.

    Raises: FileExistsError when one of these files exists.
    """
    make_folder(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "privypurse cluster")])
    authority = _certificate(name, name, key.public_key(), key, authority=True)
    _write(folder / "ca.pem", authority)
    for role in ROLES:
        own = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, role),
                x509.NameAttribute(NameOID.COMMON_NAME, f"privypurse {role}"),
            ]
        )
        _write(folder / f"{role}.pem", _certificate(subject, name, own.public_key(), key))
        _write(
            folder / f"{role}.key",
            own.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    authority: bool = False,
) -> bytes:
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        # Certificates begin to be valid an hour ago. The clock of another machine may be up to an
        # hour behind, and would refuse a certificate that is valid only from now on.
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )
    return certificate.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _write(path: Path, content: bytes) -> None:
    with create_file(path) as out:
        out.write(content)
