"""`python -m penstock` is the `penstock` command."""

from __future__ import annotations

from penstock.cli.commands import main

if __name__ == "__main__":
    main(prog_name="penstock")
