"""``python -m app.check``: checks a file of records on this machine, for ``privypurse check``.

It starts no service and reads no settings. The wheel of the client carries this module and those
that it imports, so that owners check their files by the very rules of uploads.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from app.usecases.file_check import check


def main() -> None:
    """Print the reasons for a refusal as JSON; see ``Findings``."""
    parser = argparse.ArgumentParser(prog="python -m app.check")
    parser.add_argument("file", type=Path)
    parser.add_argument("--description", type=Path, required=True)
    parser.add_argument("--media-type", required=True)
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--nodes", type=Path)
    arguments = parser.parse_args()
    findings = check(
        arguments.description.read_bytes(),
        arguments.file,
        media_type=arguments.media_type,
        gzipped=arguments.gzip,
        nodes=arguments.nodes,
    )
    print(json.dumps(asdict(findings)))


if __name__ == "__main__":
    main()
