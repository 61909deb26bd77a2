"""Random programs, run with and without what makes them fast: the results must be the same.

`python -m tests.random_programs --programs 5000` runs many; `tests/unit/runtime/test_random_programs.py` runs some.
"""
