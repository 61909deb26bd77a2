"""Runs the all-round job on real Spark again and again, disturbs it at random moments, and checks the result.

    python -m chaos.run --rounds 50 --seed 7 --kill worker,driver,executor,stop,pause --parallelism 1,2,3

A round is one job from its first start to its end. `worker`: a Python worker or daemon of Spark is killed, and the job
restarts by itself. `driver`: the driver is killed, its Java process must end as well, and the job is started again from
its newest checkpoint, at another parallelism. `executor`: the Java process of a Spark executor is killed (the round
runs on a local cluster). `point`: a process kills itself at a named point, such as in the middle of a commit. `stop`:
the job is stopped with a savepoint and started again from it, at another parallelism. `pause`: a process stands still
for up to three seconds. Ends with 0 if every round gave exactly the lines of an undisturbed run.
"""

from __future__ import annotations

import argparse
import random
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # It may also be started as a script.

from chaos.all_round_job import POINTS
from chaos.job_round import KINDS, RoundPlan, run_round


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None, help="to do the same kills again, as far as time allows")
    parser.add_argument("--kill", default=",".join(KINDS), help="what may happen to the job (%(default)s)")
    parser.add_argument("--parallelism", default="1,2,3", help="parallelisms to choose from (%(default)s)")
    parser.add_argument("--backend", default="hashmap,rocksdb", help="state backends to choose from (%(default)s)")
    parser.add_argument("--records", type=int, default=6000)
    parser.add_argument("--most-kills", type=int, default=3, help="in one round (%(default)s)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one start of the job (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the files of a failed round")
    parsed = parser.parse_args(arguments)
    unknown = set(parsed.kill.split(",")) - set(KINDS)
    if unknown:
        parser.error(f"--kill: {', '.join(sorted(unknown))} is not known; there are {', '.join(KINDS)}")
    return parsed


def plan_of(parsed: argparse.Namespace, chance: random.Random) -> RoundPlan:
    kinds = parsed.kill.split(",")
    kills = tuple(chance.choice(kinds) for _ in range(chance.randint(1, parsed.most_kills)))
    points = tuple(f"{chance.choice(POINTS)}:{chance.randint(1, 30)}" for kind in kills if kind == "point")
    parallelisms = [int(each) for each in parsed.parallelism.split(",")]
    return RoundPlan(
        records=parsed.records,
        parallelisms=tuple(chance.choice(parallelisms) for _ in range(len(kills) + 1)),
        backend=chance.choice(parsed.backend.split(",")),
        interval=chance.choice(["1 ms", "300 ms", "1 s"]),
        kills=kills,
        points=points,
        timeout_s=parsed.timeout,
    )


def main(arguments: list[str] | None = None) -> int:
    parsed = parse(arguments)
    seed = secrets.randbelow(1_000_000) if parsed.seed is None else parsed.seed
    print(f"chaos: {parsed.rounds} rounds, seed {seed}", flush=True)
    totals: Counter[str] = Counter()
    wrong = []
    for number in range(1, parsed.rounds + 1):
        chance = random.Random(f"{seed}-{number}")
        folder = Path(tempfile.mkdtemp(prefix="chaos-"))
        outcome = run_round(plan_of(parsed, chance), chance, folder)
        print(f"round {number}/{parsed.rounds}: {outcome}", flush=True)
        totals.update(outcome.counts())
        if outcome.faults:
            wrong.append(number)
        if outcome.faults and parsed.keep:
            print(f"  its files are in {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    told = ", ".join(f"{count} {what}" for what, count in sorted(totals.items()))
    verdict = f"WRONG in rounds {', '.join(map(str, wrong))}" if wrong else "all results exactly right"
    print(f"chaos: {parsed.rounds} rounds with seed {seed} ({told}): {verdict}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
