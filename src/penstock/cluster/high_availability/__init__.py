"""Several job managers, of which one leads: who that is, and what the next one needs to go on with the jobs.

A lease or ZooKeeper elects the leader (`election`). Neither can keep a leader that was paused from waking up and going
on, so every leadership has a token that is larger than those before, and two rules hold:

- who becomes the leader writes its token (`fence`), and only then reads what the jobs go on from;
- a leader that has completed a checkpoint writes that down (`job_records`), and only then reads the newest token.

So of two that believe to lead at least one sees the other: either the new one goes on from that checkpoint, or the old
one finds a larger token, and commits nothing.
"""
