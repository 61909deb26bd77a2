"""Where the time of a benchmark goes on Penstock: the job inline, in this process, under cProfile.

`python -m benchmarks.profile_job word_count --words 200000 --top 40`
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import threading
import time
from dataclasses import replace

from benchmarks.job import Setting, add_arguments, setting_of
from benchmarks.programs import run_in_process

INLINE = {"execution.target": "inline"}


def profile(name: str, setting: Setting) -> pstats.Stats:
    """Run the job once for warmth, then under the profiler."""
    run_in_process(name, setting)
    profiler = cProfile.Profile()
    # The job runs in a thread of its own; cProfile watches only the thread that it is started in.
    run = threading.Thread.run

    def profiled_run(self: threading.Thread) -> None:
        threading.Thread.run = run  # type: ignore[method-assign]
        profiler.runcall(run, self)

    threading.Thread.run = profiled_run  # type: ignore[method-assign]
    run_in_process(name, setting)
    return pstats.Stats(profiler)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_job", description=__doc__)
    parser.add_argument("name", help="a benchmark, such as word_count")
    add_arguments(parser)
    parser.set_defaults(words=200_000)
    parser.add_argument("--top", type=int, default=30, help="functions to show (%(default)s)")
    parser.add_argument("--sort", default="tottime", choices=["tottime", "cumulative", "calls"], help="(%(default)s)")
    parser.add_argument("--output", help="write the profile to this file too, for a viewer")
    parsed = parser.parse_args()
    setting = setting_of(parsed)
    setting = replace(setting, config={**setting.config, **INLINE})
    stats = profile(parsed.name, setting)
    started = time.process_time()
    run_in_process(parsed.name, setting)
    seconds = time.process_time() - started
    stats.strip_dirs().sort_stats(parsed.sort).print_stats(parsed.top)
    print(f"without the profiler: {setting.records / seconds:,.0f} records/s of CPU time, inline, one core")
    if parsed.output:
        stats.dump_stats(parsed.output)


if __name__ == "__main__":
    main()
