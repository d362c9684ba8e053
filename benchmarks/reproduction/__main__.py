"""Every table and figure of the four papers that the data allow, and one report.

    ./run reproduce [--only NAME …] [--data DIR] [--out DIR] [--seed N] [--workers N]
    ./run reproduce --list
    ./run reproduce --compare DIR   does another run's folder agree with this one's?

A run that was broken off goes on where it was. The seed is that of the simulation, of benchmarks
alone: the service takes none.
"""

import sys
from pathlib import Path

from benchmarks import files
from benchmarks.bench import Bench, Setting, missing
from benchmarks.registry import BENCHES
from benchmarks.reproduction.comparison import compare
from benchmarks.reproduction.report import build
from benchmarks.reproduction.runner import Run, say

EXPERIMENTS = tuple(bench for bench in BENCHES if bench.paper)


def main(arguments: list[str] | None = None) -> int:
    parser = files.command_line("reproduce", __doc__, files.RESULTS / "reproduction")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these, or whose names begin so")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default: 1)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--more", type=int, default=1, metavar="N",
                        help="N times the repetitions, so narrower intervals")  # fmt: skip
    parser.add_argument("--full", action="store_true", help="repeat until every claim is decided")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument("--list", action="store_true", help="list the experiments and stop")
    parser.add_argument("--compare", type=Path, metavar="DIR", help="compare --out with this")
    options = parser.parse_args(arguments)
    if options.workers < 1 or options.more < 1:
        parser.error("--workers and --more must be at least 1")
    chosen = selected(options.only)
    if not chosen:
        parser.error("no experiment of that name; --list shows them")
    if options.list:
        for one in chosen:
            print(f"{one.name:32} {one.seconds:5.0f} s  {one.question}")
        return 0
    if options.compare is not None:
        try:
            agreement = compare(options.out, options.compare)
        except ValueError as error:
            say(str(error))
            return 2
        print("\n".join(agreement.lines()))
        return 0 if agreement.good else 1
    if options.data is None or not options.data.is_dir():
        parser.error(f"no data at {options.data}: name their folder with --data or PRIVYPURSE_DATA")
    lacking = missing(options.data, chosen)
    for name, absent in lacking.items():
        say(f"{name} cannot run: {', '.join(absent)} not in {options.data}")
    if options.again:
        for one in chosen:
            files.place(options.out, one.name).unlink(missing_ok=True)
    able = [one for one in chosen if one.name not in lacking]
    setting = Setting(options.data, options.seed, options.quick, options.more, full=options.full)
    run = Run(able, options.out, setting, options.workers, say)
    run.failed |= {name: f"not in the data folder: {', '.join(f)}" for name, f in lacking.items()}
    good = run.all()
    say(f"report: {build(options.out)}")
    return 0 if good else 1


def selected(only: list[str] | None) -> list[Bench]:
    """The experiments of these names, with those that they need."""
    if only is None:
        return list(EXPERIMENTS)
    names = {e.name for e in EXPERIMENTS if any(e.name.startswith(one) for one in only)}
    needed = {n for e in EXPERIMENTS if e.name in names for n in e.needs}
    return [e for e in EXPERIMENTS if e.name in names | needed]


if __name__ == "__main__":
    sys.exit(main())
