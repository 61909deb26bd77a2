"""Many random programs: `python -m tests.random_programs --programs 5000 --seed 1`."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from tests.random_programs.comparison import WAYS, check
from tests.random_programs.generator import program_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many programs to run")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others have the next numbers")
    parser.add_argument("--ways", type=int, default=4, help="in how many ways to run each, at random")
    parser.add_argument("--show", action="store_true", help="print the program of the seed, and do not run it")
    given = parser.parse_args()
    if given.show:
        print(program_of(given.seed).text)
        return 0
    os.environ.setdefault("PENSTOCK_NO_WEB", "1")
    failures, began = 0, time.monotonic()
    for seed in range(given.seed, given.seed + given.programs):
        found = check(program_of(seed), random.Random(seed).sample(WAYS, min(given.ways, len(WAYS))))
        if found is not None:
            failures += 1
            print(found, flush=True)
    seconds = time.monotonic() - began
    print(f"{given.programs} programs in {seconds:.0f} s, {failures} with differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
