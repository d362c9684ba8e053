"""Benches: how fast, how exact and how private, beside a rival measured in the same run.

    ./run bench                           list the benches with their questions and bars
    ./run bench NAME … [--quick]          run them; a name stands for NAME.… too
    ./run bench http --before DIR         beside another checkout, in the same rounds

Each runs in a process of its own. Values, verdicts and all rounds go to one file under
benchmarks/results. The status is 1 when a bar fails. The papers' experiments: ./run reproduce.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.bench import BEFORE, Bench, Setting, missing
from benchmarks.numbers import printed
from benchmarks.registry import BENCHES
from benchmarks.result import Result, Verdict

WORDS = {Verdict.HOLDS: "holds", Verdict.FAILS: "FAILS", Verdict.OPEN: "open"}


def main(arguments: Sequence[str] | None = None, registry: Sequence[Bench] = BENCHES) -> int:
    parser = ArgumentParser(
        prog="./run bench", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="benches, or what they begin with")
    parser.add_argument("--quick", action="store_true", help="few and small, to try it out")
    parser.add_argument("--data", type=Path, metavar="DIR",
                        help="graphs and tables (default: $PRIVYPURSE_DATA, or a folder data "
                        "beside the checkout)")  # fmt: skip
    parser.add_argument("--before", type=Path, metavar="DIR", help="another checkout as a rival")
    parser.add_argument("--out", type=Path, default=files.RESULTS, metavar="DIR",
                        help="where results go (default: benchmarks/results)")  # fmt: skip
    options = parser.parse_args(arguments)
    own = [bench for bench in registry if not bench.paper]
    chosen = [b for b in own if any(f"{b.name}.".startswith(f"{n}.") for n in options.names)]
    unknown = [n for n in options.names if not any(f"{b.name}.".startswith(f"{n}.") for b in own)]
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}; ./run bench lists them")
    if not options.names:
        listed(own)
        return 0
    if options.before is not None:
        if not (options.before / "app").is_dir():
            parser.error(f"{options.before} is no checkout of the project")
        if alone := [bench.name for bench in chosen if BEFORE not in bench.rivals]:
            parser.error(f"no tree before can be measured by {', '.join(alone)}")
        options.before = options.before.resolve()
    data = options.data or files.data_folder() or Path("data")
    setting = Setting(data, quick=options.quick, before=options.before)
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
    verdicts = [claim["verdict"] for one in written["benches"] for claim in one["claims"]]
    failed = [one["name"] for one in written["benches"] if one["failed"]]
    print(", ".join(f"{verdicts.count(v)} {word}" for v, word in WORDS.items()))
    for name in failed:
        print(f"{name} did not end")
    return int(bool(failed) or Verdict.FAILS in verdicts)


def listed(benches: Sequence[Bench]) -> None:
    for bench in benches:
        print(f"{bench.name:28}{bench.seconds:6.0f} s  {bench.question}")
        if bench.rivals:
            print(f"{'':38}beside {'; '.join(bench.rivals)}")
        for bar in bench.bars[:6]:
            print(f"{'':38}{bar}")
        if len(bench.bars) > 6:
            print(f"{'':38}and {len(bench.bars) - 6} more bars")


def run(bench: Bench, setting: Setting) -> dict[str, Any]:
    """Run one bench in a process of its own and print what it found; what is saved of it."""
    print(f"\n== {bench.name}: {bench.question}", flush=True)
    result, failed, begun = Result(), "", time.perf_counter()
    if lacking := missing(setting.data, [bench]):
        failed = (
            f"{', '.join(lacking[bench.name])} not in {setting.data}: name the folder by --data"
        )
    else:
        try:
            result = alone(bench, setting)
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
    if failed:
        print(f"FAILS  {failed}", flush=True)
    else:
        result.claims += bench.judged(result, setting)
    for line in printed(result):
        print(line)
    for claim in result.claims:
        why = "" if claim.verdict is Verdict.HOLDS else f" ({claim.why})"
        print(f"{WORDS[claim.verdict]:6} {claim.says}: {claim.found}{why}")
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


def alone(bench: Bench, setting: Setting) -> Result:
    """In a fresh process: its peak of memory and its threads are those of this bench."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(bench.run, setting).result()


if __name__ == "__main__":
    sys.exit(main())
