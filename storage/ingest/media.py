"""The media types that an upload may have, and the file format that each one names."""

from email.message import Message

from storage.errors import UnsupportedMediaType

CSV, PARQUET, GRAPHML, NODE_LINK = "csv", "parquet", "graphml", "node-link"

FORMS = {
    "text/csv": CSV,
    "application/vnd.apache.parquet": PARQUET,
    "application/x-parquet": PARQUET,
    "application/graphml+xml": GRAPHML,
    "application/xml": GRAPHML,
    "application/json": NODE_LINK,
}


def form_of(media_type: str, gzipped: bool) -> str:
    """The file format that a request's ``Content-Type`` names, such as ``CSV``.

    Raises: UnsupportedMediaType for any other type, a character set that is not UTF-8, or gzip
        around anything but CSV.
    """
    header = Message()
    header["Content-Type"] = media_type
    form = FORMS.get(media_type.partition(";")[0].strip().lower())
    if form is None:
        raise UnsupportedMediaType("records come as " + ", ".join(FORMS))
    if str(header.get_param("charset", "utf-8")).lower() not in ("utf-8", "utf8", "us-ascii"):
        raise UnsupportedMediaType("texts are UTF-8")
    if gzipped and form != CSV:
        raise UnsupportedMediaType("only text/csv may be sent with Content-Encoding: gzip")
    return form
