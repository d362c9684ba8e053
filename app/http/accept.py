"""Content negotiation: the media types that an Accept header admits (RFC 9110, 12.5.1)."""


def admits(accept: str, media_type: str) -> bool:
    """Whether an Accept header admits ``media_type``."""
    main = media_type.partition("/")[0]
    quality: dict[str, float] = {}
    for part in accept.lower().split(","):
        span, *parameters = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            name, _, number = parameter.partition("=")
            if name.strip() == "q":
                try:
                    weight = float(number)
                except ValueError:
                    weight = 0.0
        quality[span] = max(weight, quality.get(span, 0.0))
    for span in (media_type, f"{main}/*", "*/*"):
        if span in quality:
            return quality[span] > 0
    return False
