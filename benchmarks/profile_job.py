"""Where the time of a benchmark goes on Penstock: the job inline, in this process, under cProfile.

`python -m benchmarks.profile_job word_count --words 200000 --top 40`
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import pstats
import threading
import time
from dataclasses import replace
from types import ModuleType

from benchmarks.job import Setting, add_arguments, results_of, setting_of

INLINE = {"execution.target": "inline"}


def profile(benchmark: ModuleType, setting: Setting) -> pstats.Stats:
    """Run the job once for warmth, then under the profiler."""
    results_of(benchmark.build, setting)
    profiler = cProfile.Profile()
    # The job runs in a thread of its own; cProfile watches only the thread that it is started in.
    run = threading.Thread.run

    def profiled_run(self: threading.Thread) -> None:
        threading.Thread.run = run  # type: ignore[method-assign]
        profiler.runcall(run, self)

    threading.Thread.run = profiled_run  # type: ignore[method-assign]
    results_of(benchmark.build, setting)
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
    benchmark = importlib.import_module(f"benchmarks.{parsed.name}")
    stats = profile(benchmark, setting)
    started = time.process_time()
    results_of(benchmark.build, setting)
    seconds = time.process_time() - started
    stats.strip_dirs().sort_stats(parsed.sort).print_stats(parsed.top)
    print(f"without the profiler: {setting.records / seconds:,.0f} records/s of CPU time, inline, one core")
    if parsed.output:
        stats.dump_stats(parsed.output)


if __name__ == "__main__":
    main()
