"""One page made of result files alone: it opens without internet, and nothing in it is computed.

Every number on the page stands in a result file or in the summary; here they are only laid out.
"""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from benchmarks import files
from benchmarks.numbers import formatted
from benchmarks.reproduction.plots import geometry
from benchmarks.result import FAILS, HOLDS, OPEN, OTHERWISE, Verdict

FOLDER = Path(__file__).parent
CLASSES = {HOLDS: "holds", OTHERWISE: "otherwise", FAILS: "fails", OPEN: "open"}


def build(folder: Path) -> Path:
    """Write the report of a folder; its path."""
    summary = files.read(folder / files.SUMMARY)
    if summary is None:
        raise FileNotFoundError(f"{folder} holds no {files.SUMMARY}: run something first")
    path = folder / files.REPORT
    files.put(path, rendered(summary, list(files.results(folder))))
    return path


def rendered(summary: dict[str, Any], results: list[dict[str, Any]]) -> str:
    papers = list(dict.fromkeys(one["paper"] for one in [*summary["inventory"], *results]))
    return _filled("report.html", summary=summary, results=results, papers=papers)


def plotted(benches: list[dict[str, Any]]) -> str:
    """A page with the plots of these benches alone; the same numbers are printed as tables."""
    return _filled("plots.html", benches=benches)


def _filled(template: str, **values: Any) -> str:
    environment = Environment(
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        loader=FileSystemLoader(FOLDER, encoding="utf-8"),
    )
    environment.filters["formatted"] = formatted
    environment.filters["geometry"] = geometry
    environment.filters["style"] = lambda verdict: CLASSES[Verdict(verdict)]
    return environment.get_template(template).render(**values)
