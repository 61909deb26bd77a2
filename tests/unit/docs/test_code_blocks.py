"""Every Python block of the documentation runs, and prints what the page says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.connectors.test_pages import SERVERS
from tests.unit.docs.code_blocks import PAGES, ROOT, CodeBlock, code_blocks

from penstock.cli.program import Program
from penstock.datastream.launch import Launch, PlanOnlyExit, launching

#: Pages whose programs need a server or Spark, with the tests that run them.
ELSEWHERE = {f"docs/connectors/{page}.md": "tests/connectors/test_pages.py" for page in SERVERS} | {
    "docs/state_processor.md": "tests/jobs/test_state_processor_page.py"
}
BLOCKS = [block for page in PAGES for block in code_blocks(page) if block.page not in ELSEWHERE]


def of_kind(kind: str) -> list[CodeBlock]:
    return [block for block in BLOCKS if block.kind == kind]


def run(block: CodeBlock, folder: Path, launch: Launch) -> None:
    script = folder / "program.py"
    script.write_text(block.program, encoding="utf-8")
    with launching(launch):
        Program(str(script)).run()


@pytest.mark.parametrize("block", of_kind("run"), ids=str)
def test_block_runs_and_prints_what_the_page_says(block, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(block, tmp_path, Launch(configuration={"execution.target": "inline", "parallelism.default": "3"}))
    if block.printed is not None:
        assert capsys.readouterr().out.strip() == block.printed.strip()


@pytest.mark.parametrize("block", of_kind("plan"), ids=str)
def test_job_of_a_block_that_cannot_run_here_can_be_built(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    launch = Launch(configuration={"execution.target": "inline", "parallelism.default": "3"}, plan_only=True)
    with pytest.raises(PlanOnlyExit):
        run(block, tmp_path, launch)
    assert launch.submitted


@pytest.mark.parametrize("block", of_kind("no-run"), ids=str)
def test_block_that_cannot_run_compiles_and_its_imports_work(block):
    tree = ast.parse(block.program, filename=str(block))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), str(block), "exec"), {})


def test_pages_tested_elsewhere_exist_and_so_do_their_tests():
    assert [path for pair in ELSEWHERE.items() for path in pair if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("block", [block for block in of_kind("run") if "docs/connectors/" in block.page], ids=str)
def test_programs_of_connectors_say_what_they_print(block):
    assert block.printed is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_python_hides_behind_another_name(page):
    assert re.findall(r"^```(?:py|python3|Python|pycon)\b", page.read_text(encoding="utf-8"), re.MULTILINE) == []


def test_blocks_are_found():
    assert len(of_kind("run")) > 30, "the pages have more programs than that: are they still found?"
