"""One pipelined region of a job: what its next epoch is for, when it runs, and what it results in."""
