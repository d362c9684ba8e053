"""Where data lie and results go. A file of results is written whole or not at all."""

import json
import os
import platform
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
LIBRARIES = ("numpy", "scipy", "numba", "pyarrow", "scikit-learn")
SUMMARY = "summary.json"
REPORT = "report.html"
#: The version of the format of result files. Files of another version are not read.
FORM = 5


def write(path: Path, content: Any) -> None:
    """Whoever reads ``path`` finds the old content or the new, also after a power cut."""
    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    put(path, text)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def read(path: Path) -> dict[str, Any] | None:
    """None where there is no such file, or none that was written whole."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    return content if isinstance(content, dict) else None


def place(folder: Path, experiment: str) -> Path:
    return folder / f"{experiment}.json"


def results(folder: Path) -> Iterator[dict[str, Any]]:
    """Every result of the folder, by name of experiment."""
    for path in sorted(folder.glob("*.json")):
        if path.name != SUMMARY and (content := read(path)) and content.get("form") == FORM:
            yield content


def data_folder() -> Path | None:
    """What the variable names, else the first folder of data beside the checkout."""
    if named := os.environ.get("PRIVYPURSE_DATA"):
        return Path(named)
    beside = sorted([*ROOT.parent.glob("data/manifest.json"),
                     *ROOT.parent.glob("*/data/manifest.json")])  # fmt: skip
    return beside[0].parent if beside else None


def command_line(command: str, description: str | None, results: Path) -> ArgumentParser:
    """The options that the commands of benches share."""
    parser = ArgumentParser(
        prog=f"./run {command}",
        description=description,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=data_folder(), metavar="DIR",
                        help="graphs and tables (default: $PRIVYPURSE_DATA, or a folder data "
                        "beside the checkout)")  # fmt: skip
    usual = results.relative_to(ROOT)
    parser.add_argument("--out", type=Path, default=results, metavar="DIR",
                        help=f"where results go (default: {usual})")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="few and small, to try it out")
    return parser


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
