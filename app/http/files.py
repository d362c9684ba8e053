"""Files for download that the API and the dashboard both send."""

from starlette.responses import Response

#: The media type of a certificate: a JWS, a signed JSON text, in its compact form (RFC 7515).
JOSE = "application/jose"


def jose_file(signed: str, name: str) -> Response:
    """A certificate as a file for download."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.jws"'}
    return Response(signed, headers=headers, media_type=JOSE)
