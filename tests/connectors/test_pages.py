"""The programs on the pages about connectors print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.cli.program import Program
from penstock.datastream.launch import Launch, launching

PAGES = Path(__file__).parents[2] / "docs" / "connectors"
SERVERS = {
    "kafka": "kafka", "jdbc": "postgres", "redis": "redis_server", "http": None, "formats": None, "spark": "spark",
    "wrapping": None, "elasticsearch": "bulk_server",
}  # fmt: skip


def programs(page):
    """Each program with what it prints."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```\n\nprints(?: `(.*?)`|\n\n```\n(.*?)```)", text, re.DOTALL)
    assert len(found) == text.count("```python") > 0, f"a program of {page}.md does not say what it prints"
    return [(program, (line or lines).strip()) for program, line, lines in found]


@pytest.mark.parametrize("page", SERVERS)
def test_programs_on_the_page_print_what_they_say(page, request, tmp_path, capsys, monkeypatch):
    if SERVERS[page] is not None:
        server = request.getfixturevalue(SERVERS[page])
        monkeypatch.setenv("KAFKA_SERVERS", getattr(server, "bootstrap_servers", ""))
        monkeypatch.setenv("POSTGRES_URL", getattr(server, "url", ""))
        monkeypatch.setenv("POSTGRES_USER", "penstock")
        monkeypatch.setenv("REDIS_URL", getattr(server, "url", ""))
        monkeypatch.setenv("ELASTICSEARCH_HOST", getattr(server, "host", ""))
    for program, output in programs(page):
        script = tmp_path / "program.py"
        script.write_text(program, encoding="utf-8")
        with launching(Launch(configuration={"execution.target": "inline", "parallelism.default": "3"})):
            Program(str(script)).run()
        assert capsys.readouterr().out.strip() == output
