"""The metrics of jobs: what is known, what it is called, and who is told."""
