"""Give all functions a file: it is there on every machine, wherever they run."""

from __future__ import annotations

import tempfile
from pathlib import Path

from penstock.datastream import MapFunction, StreamExecutionEnvironment

COUNTRIES = "de Germany\nfr France\nit Italy\n"


class Spell(MapFunction):
    def open(self, runtime_context):
        file = runtime_context.get_distributed_cache().get_file("countries")
        self._names = dict(line.split() for line in Path(file).read_text().splitlines())

    def map(self, value):
        return self._names.get(value, f"unknown country {value!r}")


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "countries.txt")
    file.write_text(COUNTRIES)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.register_cached_file(str(file), "countries")
    env.from_collection(["it", "de", "xx", "fr"]).map(Spell()).print()
    env.execute("cached files")
