"""`penstock sql`: scripts, statement sets, a prompt on a terminal, and what goes wrong."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

import pytest
from click.testing import CliRunner

from penstock.cli.commands import main
from penstock.cli.sql_statements import split_statements, without_comments
from penstock.table.materialized import MaterializedTable

PATIENCE_S = 60
NUMBERS = """
    CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '4',
      'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '4');
    CREATE TABLE shown (n INT) WITH ('connector' = 'print');
"""


def sql(*words: str, **more: str):
    return CliRunner().invoke(main, ["sql", "-t", "inline", "-D", "parallelism.default=1", *words], **more)


# --- statements ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        (";;", [], ""),
        ("SHOW TABLES", [], "SHOW TABLES"),
        ("a;b ;c", ["a", "b"], "c"),
        ("SELECT ';';", ["SELECT ';'"], ""),
        ("SELECT 'it''s;';x", ["SELECT 'it''s;'"], "x"),
        ("SELECT `a;b`;", ["SELECT `a;b`"], ""),
        ("-- no; statement\n;a;", ["a"], ""),
        ("/* no; statement */ a;", ["/* no; statement */ a"], ""),
        ("SELECT 'open; end", [], "SELECT 'open; end"),
    ],
)
def test_statements_end_with_semicolons_that_are_no_text(text, statements, rest):
    assert split_statements(text) == (statements, rest)


def test_comments_alone_are_no_statement():
    assert without_comments("-- one\n /* two */ -- three") == ""


def test_table_of_changes_has_equal_rows_as_often_as_they_were_added():
    table = MaterializedTable()
    for kind, row in [(0, ("a", [1])), (0, ("a", [1])), (3, ("a", [1])), (1, ("never there",)), (2, ("b", [2]))]:
        table.change(kind, row)
    assert table.rows() == [("a", [1]), ("b", [2])]


# --- scripts ---------------------------------------------------------------------------------------------------------


def test_script_runs_to_its_end_and_waits_for_its_jobs(tmp_path):
    script = tmp_path / "script.sql"
    script.write_text(NUMBERS + "INSERT INTO shown SELECT n * 10 FROM numbers; SELECT SUM(n) AS total FROM numbers")
    result = sql("-f", str(script))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == ["OK", "OK"]
    assert [line for line in lines if line.startswith("+I[")] == ["+I[10]", "+I[20]", "+I[30]", "+I[40]"]
    assert ["|", "+U", "|", "10", "|"] in [line.split() for line in lines]


def test_statement_set_is_one_job():
    inserts = "INSERT INTO shown SELECT n FROM numbers; INSERT INTO shown VALUES (7);"
    result = sql("-e", f"{NUMBERS} EXECUTE STATEMENT SET BEGIN {inserts} END; SHOW JOBS")
    assert result.exit_code == 0, result.output
    assert sorted(line for line in result.stdout.splitlines() if line.startswith("+I[")) == [
        *("+I[1]", "+I[2]", "+I[3]", "+I[4]", "+I[7]")
    ]
    assert "1 job started by this client" in result.stdout


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("SELECT nothing FROM numbers; SHOW TABLES", "Column 'nothing' not found"),
        ("BEGIN STATEMENT SET; SELECT 1; SHOW TABLES", "a statement set holds INSERT statements and ends with END"),
        ("BEGIN STATEMENT SET; INSERT INTO shown SELECT n FROM numbers", "the statement set has no END"),
        ("STOP JOB 'abc'; SHOW TABLES", "this client has started no job 'abc'"),
        ("SET 'sql-client.execution.result-mode' = 'pie'; SHOW TABLES", "'pie' is not known; use tableau"),
    ],
)
def test_script_ends_at_the_first_statement_that_fails(statements, message):
    result = sql("-e", NUMBERS + statements)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "table name" not in result.stdout


def test_missing_file_ends_with_two():
    result = sql("-f", "nowhere.sql")
    assert (result.exit_code, "no such file: nowhere.sql" in result.stderr) == (2, True)


def test_settings_need_a_value():
    result = sql("-D", "parallelism.default")
    assert (result.exit_code, "expected KEY=VALUE" in result.stderr) == (2, True)


def test_statements_can_come_by_a_pipe():
    result = sql(input="SELECT 40 + 2 AS answer;\nQUIT;\nSELECT 'not run';\n")
    assert result.exit_code == 0 and "42" in result.stdout and "not run" not in result.stdout


# --- a person at a terminal ------------------------------------------------------------------------------------------


class Terminal:
    """The client on a terminal; everything it has shown."""

    def __init__(self, home):
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.environ.update(HOME=str(home), TERM="xterm", COLUMNS="100", LINES="30")
            os.execv(sys.executable, [sys.executable, "-m", "penstock.cli", "sql", "-t", "inline"])
        self.shown = ""

    def types(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def waits_for(self, text: str) -> None:
        deadline, begin = time.monotonic() + PATIENCE_S, 0
        while text not in self.shown[begin:]:
            assert time.monotonic() < deadline, self.shown
            if select.select([self._terminal], [], [], 0.1)[0]:
                self.shown += os.read(self._terminal, 65536).decode(errors="replace")
        self.shown = self.shown[self.shown.index(text) + len(text) :]

    def ends(self) -> int:
        while select.select([self._terminal], [], [], PATIENCE_S)[0]:
            try:
                if not os.read(self._terminal, 65536):
                    break
            except OSError:  # This is how Linux reports that the last one has hung up.
                break
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


def test_interrupting_a_query_ends_it_and_not_the_client(tmp_path):
    terminal = Terminal(tmp_path)
    terminal.waits_for("Penstock SQL> ")
    terminal.types("CREATE TABLE clicks (id INT) WITH ('connector' = 'datagen', 'rows-per-second' = '50');\n")
    terminal.waits_for("OK")
    terminal.types("SELECT COUNT(*) AS seen\n")
    terminal.waits_for("> ")
    terminal.types("FROM clicks;\n")
    terminal.waits_for("+U")
    terminal.types("\x03")
    terminal.waits_for("was cancelled")
    terminal.types("SET 'sql-client.execution.result-mode' = 'table';\n")
    terminal.waits_for("OK")
    terminal.types("SELECT COUNT(*) AS seen FROM clicks;\n")
    terminal.waits_for("Ctrl-C ends the query")
    terminal.types("\x03")
    terminal.waits_for("was cancelled")
    terminal.types("QUIT;\n")
    assert terminal.ends() == 0
    assert "SELECT COUNT(*) AS seen FROM clicks;" in (tmp_path / ".penstock_sql_history").read_text()
