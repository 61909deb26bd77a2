"""Several job managers, of which one leads: who that is, and what the next one needs to continue the jobs.

A lease or ZooKeeper elects the leader (`election`). Neither can keep a leader that was paused from waking up and
continuing, so every leadership has a token that is larger than those before, and two rules hold:

- a new leader writes its token (`fence`), and only then reads what the jobs continue from;
- a leader that has completed a checkpoint writes that down (`job_records`), and only then reads the newest token.

So of two that believe they lead, one sees the other: either the new one continues from that checkpoint, or the old
one finds a larger token, and commits nothing.
"""
