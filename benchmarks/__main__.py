"""Benches: how fast, how exact and how private, beside a rival measured in the same run.

    ./run bench                           list the benches with their questions and bars
    ./run bench NAME … [--quick]          run them; a name stands for NAME.… too
    ./run bench http --before DIR         beside another checkout, in the same rounds

Each runs in a process of its own. Values, verdicts and all rounds go to one file under
benchmarks/results, and plots to a page beside it. The status is 1 when a bar fails. The papers'
experiments: ./run reproduce.
"""

import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.bench import BEFORE, Bench, Setting, missing
from benchmarks.numbers import printed
from benchmarks.registry import BENCHES
from benchmarks.reproduction.report import plotted
from benchmarks.result import FAILS, HOLDS, OPEN, Result
from benchmarks.rounds import in_own_process

WORDS = {HOLDS: "holds", FAILS: "FAILS", OPEN: "open"}


def main(arguments: Sequence[str] | None = None, registry: Sequence[Bench] = BENCHES) -> int:
    parser = files.command_line("bench", __doc__, files.RESULTS)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benches, or what they begin with")
    parser.add_argument("--before", type=Path, metavar="DIR", help="another checkout as a rival")
    options = parser.parse_args(arguments)
    own = [bench for bench in registry if not bench.paper]
    chosen = [b for b in own if any(f"{b.name}.".startswith(f"{n}.") for n in options.names)]
    unknown = [n for n in options.names if not any(f"{b.name}.".startswith(f"{n}.") for b in own)]
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}; ./run bench lists them")
    if not options.names:
        list_all(own)
        return 0
    if options.before is not None:
        if not (options.before / "app").is_dir():
            parser.error(f"{options.before} is no checkout of the project")
        if without := [bench.name for bench in chosen if BEFORE not in bench.rivals]:
            parser.error(f"no tree before can be measured by {', '.join(without)}")
        options.before = options.before.resolve()
    setting = Setting(options.data or Path("data"), quick=options.quick, before=options.before)
    written = {
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "before": options.before and str(options.before),
        "processors": os.cpu_count(),
        "load": list(os.getloadavg()),
        "versions": files.versions(),
        "benches": [run(bench, setting) for bench in chosen],
    }
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = options.out / f"bench-{stamp}.json"
    files.write(path, written)
    print(f"\nwrote {path}")
    if with_plots := [one for one in written["benches"] if one["plots"]]:
        files.put(path.with_suffix(".html"), plotted(with_plots))
        print(f"wrote {path.with_suffix('.html')}")
    verdicts = [claim["verdict"] for one in written["benches"] for claim in one["claims"]]
    failed = [one["name"] for one in written["benches"] if one["failed"]]
    print(", ".join(f"{verdicts.count(v)} {word}" for v, word in WORDS.items()))
    for name in failed:
        print(f"{name} did not end")
    return int(bool(failed) or FAILS in verdicts)


def list_all(benches: Sequence[Bench]) -> None:
    for bench in benches:
        print(f"{bench.name:28}{bench.seconds:6.0f} s  {bench.question}")
        if bench.rivals:
            print(f"{'':38}beside {'; '.join(bench.rivals)}")
        for bar in bench.bars[:6]:
            print(f"{'':38}{bar.of(bar.value)}")
        if len(bench.bars) > 6:
            print(f"{'':38}and {len(bench.bars) - 6} more bars")


def run(bench: Bench, setting: Setting) -> dict[str, Any]:
    """Run one bench in a process of its own and print its values; returns what is saved."""
    print(f"\n== {bench.name}: {bench.question}", flush=True)
    result, failed, begun = Result(), "", time.perf_counter()
    if lacking := missing(setting.data, [bench]):
        absent = ", ".join(lacking[bench.name])
        failed = f"{absent} not in {setting.data}: name the folder by --data"
    else:
        try:
            result = in_own_process(bench.measure, setting)
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
    if failed:
        print(f"FAILS  {failed}", flush=True)
    else:
        result.claims += bench.judged(result, setting)
    for line in printed(result):
        print(line)
    for claim in result.claims:
        why = "" if claim.verdict is HOLDS else f" ({claim.why})"
        print(f"{WORDS[claim.verdict]:6} {claim.says}: {claim.seen}{why}")
    seconds = time.perf_counter() - begun
    print(f"{seconds:.0f} s", flush=True)
    return {
        "name": bench.name,
        "question": bench.question,
        "rivals": bench.rivals,
        "seconds": round(seconds, 1),
        "failed": failed,
        **result.written(),
    }


if __name__ == "__main__":
    sys.exit(main())
