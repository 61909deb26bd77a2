"""The metrics of jobs: what is known, what it is called, and where it is reported."""
