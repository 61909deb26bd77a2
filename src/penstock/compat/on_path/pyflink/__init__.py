"""What `import pyflink` finds in Spark's Python workers of a `--pyflink` run: it steps aside for Penstock."""

from __future__ import annotations

from penstock.compat.pyflink_alias import install

install()
