"""The pages that are made from the code have all of it, and the navigation names pages that exist."""

from __future__ import annotations

import importlib
import re
import sys

import click
import pytest
from tests.unit.docs.code_blocks import ROOT

from penstock.cli import main
from penstock.common.config_keys import KNOWN_OPTIONS

sys.path.insert(0, str(ROOT / "docs" / "site"))
build, navigation, rest_reference, api_reference = map(
    importlib.import_module, ("build", "navigation", "rest_reference", "api_reference")
)
PAGES = build.generated_pages()


def test_every_configuration_key_is_on_the_page_once():
    listed = re.findall(r"^\| `([\w.-]+)` \|", PAGES["reference/configuration.md"], re.MULTILINE)
    assert sorted(listed) == sorted(KNOWN_OPTIONS)


def test_every_command_and_its_options_are_on_the_page():
    page, context = PAGES["reference/command-line.md"], click.Context(main)
    for verb in main.list_commands(context):
        command = main.get_command(context, verb)
        assert f"## penstock {verb}\n" in page
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        names = [name for each in options for name in each.opts]
        assert [name for name in names if not re.search(rf"`[^`]*{re.escape(name)}\b", page)] == []


def test_pages_about_the_command_line_say_how_shells_complete_it():
    lines = re.findall(r"^.*_PENSTOCK_COMPLETE=.*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 3
    assert [line for line in lines if line not in PAGES["reference/command-line.md"]] == []


def test_every_route_is_on_the_page():
    assert [route for route in rest_reference.DESCRIBED if f"| `{route}` |" not in PAGES["reference/rest.md"]] == []


def test_streams_and_their_methods_are_on_the_page():
    page = PAGES["reference/api/streams.md"]
    for name in ("key_by", "window_all", "execute_and_collect", "allowed_lateness", "side_output_late_data"):
        assert f"{{py:method}} {name}(" in page


def test_every_module_of_a_connector_is_on_a_page_unless_it_is_refused():
    shown = {module for page in api_reference.PAGES for module in page.modules}
    folder = ROOT / "src" / "penstock" / "datastream" / "connectors"
    modules = [path for path in folder.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"]
    names = {path.stem for path in modules if not path.stem.startswith("_")}
    left_out = {name for name in names if f"penstock.datastream.connectors.{name}" not in shown}
    # Refused here, as docs/compatibility.md says; of Spark's, methods of streams make use; support is for connectors.
    assert left_out == {"cassandra", "kinesis", "pulsar", "rabbitmq", "spark", "support"}


def test_navigation_names_pages_that_exist_and_leaves_none_out(tmp_path):
    build.assemble(tmp_path / "source")
    there = {path.relative_to(tmp_path / "source").with_suffix("").as_posix() for path in tmp_path.rglob("*.md")}
    named = {navigation._path(page) for section in navigation.SECTIONS for page in section.pages}
    named |= {f"{parent.rpartition('/')[0]}/{page}" for parent, pages in navigation.CHILDREN.items() for page in pages}
    assert named - there == set()
    trees = "\n".join(navigation.toctrees(there).values())
    assert [page for page in there - {"index"} if page.rpartition("/")[2] not in trees] == []


@pytest.mark.parametrize(
    ("link", "source", "page", "expected"),
    [
        ("[s](../SECURITY.md)", "docs/security.md", "security.md", "[s](project/security-policy.md)"),
        ("[d](docs/security.md#a)", "SECURITY.md", "project/security-policy.md", "[d](../security.md#a)"),
        ("[s](../state.md)", "docs/concepts/state.md", "concepts/state.md", "[s](../state.md)"),
        ("[l](https://x.y/a.md)", "docs/state.md", "state.md", "[l](https://x.y/a.md)"),
    ],
)
def test_links_lead_to_pages_of_the_site(link, source, page, expected):
    assert build.in_the_site(link, source, page) == expected


@pytest.mark.parametrize("tag", ['<script src="https://cdn.example/x.js">', '<link href="//fonts.example/f.css">'])
def test_a_page_that_loads_something_from_another_host_is_reported(tag, tmp_path, capsys):
    (tmp_path / "page.html").write_text(f"<html>{tag}</html>")
    assert build.report_outside(tmp_path) == 1 and "page.html loads" in capsys.readouterr().err


def test_docstrings_become_markdown():
    shown = api_reference.markdown("Sum.\n\n>>> 1 + 1\n2\n\n:param a: First.\n:param b: Second.")
    assert "```pycon\n>>> 1 + 1\n2\n```" in shown
    assert re.search(r"- `a`: First\.\n+- `b`: Second\.", shown)
