"""One page made of result files alone: it opens without internet, and nothing in it is computed.

Every number on the page stands in a result file or in the summary; here they are only laid out.
"""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from benchmarks import files
from benchmarks.numbers import formatted
from benchmarks.reproduction.plots import geometry
from benchmarks.result import FAILS, HOLDS, OPEN, OTHERWISE, Difference, Verdict

FOLDER = Path(__file__).parent
CLASSES = {HOLDS: "holds", OTHERWISE: "otherwise", FAILS: "fails", OPEN: "open"}


def build(folder: Path) -> Path:
    """Write the report of a folder; its path.

    Raises: ValueError if a verdict contradicts its numbers.
    """
    summary = files.read(folder / files.SUMMARY)
    if summary is None:
        raise FileNotFoundError(f"{folder} holds no {files.SUMMARY}: run something first")
    results, path = list(files.results(folder)), folder / files.REPORT
    if wrong := contradictions(results):
        raise ValueError(f"verdicts that contradict their numbers: {'; '.join(wrong)}")
    files.put(path, rendered(summary, results))
    return path


def contradictions(results: list[dict[str, Any]]) -> list[str]:
    """The claims whose verdict does not follow from the difference that they state."""
    return [
        f"{result['experiment']}: {claim['says']}: {claim['verdict']}"
        for result in results
        for claim in result["claims"]
        if claim.get("difference") and Difference(**claim["difference"]).verdict != claim["verdict"]
    ]


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
