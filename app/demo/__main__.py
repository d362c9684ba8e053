"""``python -m app.demo``: start a service on a temporary folder, run the session, clean up."""

import sys
import tempfile
import time
from pathlib import Path

from app.demo.service import ServiceDied, ServiceProcess
from app.demo.session import session
from app.demo.transcript import Transcript, Unexpected


def main() -> int:
    """Run the demonstration. Returns 0 if every reply is as expected, otherwise 1."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="privypurse-demo-") as name:
        folder = Path(name)
        service = ServiceProcess(folder / "data", PURSE_UPLOAD_WAIT="300")
        try:
            with service:
                print(f"a service of its own at {service.url}; its data go when it ends")
                session(Transcript(service.url, folder, service.admin_key), folder)
        except (ServiceDied, Unexpected) as error:
            print(f"\nthe demonstration failed: {error}", file=sys.stderr)
            print(service.log_end(), file=sys.stderr)
            return 1
    print(f"\n## Done in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
