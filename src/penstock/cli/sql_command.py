"""`penstock sql`: statements of Flink SQL, typed at a prompt or read from a file."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.completion import complete_file
from penstock.cli.errors import NoSuchFile, complain, report
from penstock.cli.sql_statements import begins_statement_set, split_statements, without_comments
from penstock.common import config_keys as keys
from penstock.common.config_file import load_conf_dir
from penstock.common.configuration import Configuration

if TYPE_CHECKING:
    from penstock.common.job_client import JobClient
    from penstock.table import TableEnvironment, TableResult
    from penstock.table.statement_set import StatementSet

_HISTORY = Path.home() / ".penstock_sql_history"
_MOST_HISTORY = 2_000
_PROMPT, _GOES_ON = "Penstock SQL> ", "            > "
RESULT_MODE = "sql-client.execution.result-mode"
_MODES = ("tableau", "table")
_OWN_SETTING = re.compile(r"SET\s+'(sql-client\.[^']+)'\s*=\s*'([^']*)'", re.IGNORECASE)
_HELP = f"""\
Statements end with a semicolon and may go over several lines.
  SHOW TABLES;  DESCRIBE t;  EXPLAIN SELECT ...;     what there is, and how a query runs
  SET 'key' = 'value';                               a setting; SET; lists them
  SET '{RESULT_MODE}' = 'table';  show results as a table that changes in place
                              ... = 'tableau';       print every change (the default)
  SELECT ...;                                        Ctrl-C ends the query
  INSERT INTO t SELECT ...;                          starts a job, which runs on while you type
  SHOW JOBS;  STOP JOB 'id';                         the jobs of this client
  QUIT;                                              ends the client, and its jobs"""
_WORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP BY",
        "ORDER BY",
        "HAVING",
        "LIMIT",
        "JOIN",
        "LEFT JOIN",
        "UNION ALL",
        "DISTINCT",
    ),
    *("INSERT INTO", "VALUES", "CREATE TABLE", "CREATE TEMPORARY VIEW", "CREATE FUNCTION", "DROP TABLE", "DROP VIEW"),
    *("SHOW TABLES", "SHOW VIEWS", "SHOW FUNCTIONS", "SHOW DATABASES", "SHOW CATALOGS", "SHOW JOBS", "STOP JOB"),
    *("DESCRIBE", "EXPLAIN", "SET", "RESET", "USE", "QUIT", "HELP", "CLEAR"),
    *("TUMBLE", "HOP", "CUMULATE", "SESSION", "DESCRIPTOR", "INTERVAL", "WATERMARK FOR", "PRIMARY KEY", "NOT ENFORCED"),
    *("COUNT", "SUM", "MIN", "MAX", "AVG", "CASE", "WHEN", "THEN", "ELSE", "END", "BETWEEN", "EXISTS", "OVER", "LIKE"),
)


@click.command()
@click.option("-f", "--file", metavar="FILE", help="Run a file, then end.", shell_complete=complete_file)
@click.option("-i", "--init", metavar="FILE", help="Run a file first.", shell_complete=complete_file)
@click.option("-e", "--execute", "statements", metavar="STATEMENTS", help="Run these statements, then end.")
@click.option("-t", "--target", type=click.Choice(["local", "spark", "inline"]), help="Where jobs run.")
@click.option("-D", "settings", metavar="KEY=VALUE", multiple=True, help="A setting; may be given several times.")
@click.option("--debug", is_flag=True, help="Show whole stacks of errors.")
def sql(
    file: str | None,
    init: str | None,
    statements: str | None,
    target: str | None,
    settings: tuple[str, ...],
    debug: bool,
) -> None:
    """Run statements of Flink SQL: at a prompt, or those of a file.

    Needs the planner's jars: pip install 'penstock[table]'. At the prompt, HELP; says more.
    """
    if file is not None and statements is not None:
        raise click.UsageError("give either -f or -e, not both")
    script = _text_of(file) if file is not None else statements
    client = _Client(_configuration(target, settings), debug)
    succeeded = True
    if init is not None:
        succeeded = client.run_script(_text_of(init))
    if script is not None:
        succeeded = succeeded and client.run_script(script, waits=True)
    elif succeeded:
        _Prompt(client).run()
    client.end()
    if not succeeded:
        sys.exit(1)


def _text_of(file: str) -> str:
    path = Path(file)
    if not path.is_file():
        raise NoSuchFile(file)
    return path.read_text(encoding="utf-8")


def _configuration(target: str | None, settings: tuple[str, ...]) -> Configuration:
    given = dict(load_conf_dir())
    for setting in settings:
        key, has_value, value = setting.partition("=")
        if not has_value:
            raise click.UsageError(f"-D {setting}: expected KEY=VALUE")
        given[key.strip()] = value.strip()
    if target is not None:
        given[keys.TARGET.key] = target
    return Configuration.from_dict(given)


class _Client:
    """Runs statements one by one, and knows the jobs that they have started."""

    def __init__(self, configuration: Configuration, is_debug: bool) -> None:
        from penstock.table import EnvironmentSettings, TableEnvironment

        settings = EnvironmentSettings.new_instance().with_configuration(configuration)
        if configuration.get_string("execution.runtime-mode", "STREAMING").upper() == "BATCH":
            settings = settings.in_batch_mode()
        self._is_debug = is_debug
        self._environment = TableEnvironment.create(settings.build())
        self._result_mode = _MODES[0]
        self._jobs: list[JobClient] = []
        self._set: StatementSet | None = None
        """The statement set that is being gathered."""

    @property
    def environment(self) -> TableEnvironment:
        return self._environment

    def run_script(self, text: str, waits: bool = False) -> bool:
        """Run statements until one fails; False if one has. `waits`: for the jobs that they start, too."""
        statements, rest = split_statements(text)
        if without_comments(rest):
            statements.append(rest.strip())  # The last one needs no semicolon.
        if not all(self.run(statement, waits) for statement in statements):
            return False
        if self._set is not None:
            complain("the statement set has no END; nothing of it was run")
            return False
        return True

    def run(self, statement: str, waits: bool = False) -> bool:
        """Run a statement, and show what it gives; False if it has failed."""
        try:
            self._run(statement, waits)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            return False
        except Exception as error:  # Whatever it is, the next statement may still run.
            report(error, self._is_debug)
            return False
        return True

    def _run(self, statement: str, waits: bool) -> None:
        begins, text = begins_statement_set(statement)
        if begins:
            self._set = self._environment.create_statement_set()
            if not text:
                return
        words = text.upper().split()
        if self._set is not None:
            self._add_to_set(text, words, waits)
        elif (setting := _OWN_SETTING.fullmatch(text)) is not None:
            self._set_own(*setting.groups())
        elif words[:2] == ["SHOW", "JOBS"]:
            self._show_jobs()
        elif words[:2] == ["STOP", "JOB"]:
            self._stop_job(text)
        else:
            self._show(self._environment.execute_sql(text), waits)

    def _set_own(self, key: str, value: str) -> None:
        """A setting of the client, of which jobs know nothing."""
        if key != RESULT_MODE:
            raise click.UsageError(f"the client has no setting {key!r}; it has {RESULT_MODE}")
        if value.lower() not in _MODES:
            raise click.UsageError(f"{RESULT_MODE}: {value!r} is not known; use {' or '.join(_MODES)}")
        self._result_mode = value.lower()
        click.echo("OK")

    def _add_to_set(self, text: str, words: list[str], waits: bool) -> None:
        assert self._set is not None
        if words == ["END"]:
            gathered, self._set = self._set, None
            self._show(gathered.execute(), waits)
        elif words[0] == "INSERT":
            self._set.add_insert_sql(text)
        else:
            self._set = None
            raise click.UsageError(f"a statement set holds INSERT statements and ends with END, got {text!r}")

    def _show(self, result: TableResult, waits: bool) -> None:
        job = result.get_job_client()
        if job is None:
            result.print()
        elif result.is_query:
            self._show_query(result, job)
        else:
            click.echo(f"Job {job.get_job_id()} was started.", err=True)
            self._jobs.append(job)
            if waits:
                self._until_it_ends(job, result.wait)

    def _show_query(self, result: TableResult, job: JobClient) -> None:
        if self._result_mode == "table" and sys.stdout.isatty():
            from penstock.cli.sql_table import show_table

            self._until_it_ends(job, lambda: show_table(result))
        else:
            self._until_it_ends(job, result.print)

    def _until_it_ends(self, job: JobClient, show: Callable[[], object]) -> None:
        try:
            show()
        except KeyboardInterrupt:
            job.cancel().result()
            click.echo(f"\nJob {job.get_job_id()} was cancelled.", err=True)

    def _show_jobs(self) -> None:
        for job in self._jobs:
            click.echo(f"{job.get_job_id()}  {job.get_job_status().result().name}")
        click.echo(f"{len(self._jobs)} job{'' if len(self._jobs) == 1 else 's'} started by this client")

    def _stop_job(self, text: str) -> None:
        wanted = text.split(None, 2)[2].strip().strip("'\"") if len(text.split()) > 2 else ""
        for job in self._jobs:
            if str(job.get_job_id()) == wanted:
                job.cancel().result()
                click.echo(f"Job {wanted} was cancelled.")
                return
        raise click.UsageError(f"STOP JOB: this client has started no job {wanted!r}; SHOW JOBS lists them")

    def end(self) -> None:
        """Jobs of this process end with it."""
        for job in self._jobs:
            if not job.get_job_status().result().is_globally_terminal_state():
                click.echo(f"Job {job.get_job_id()} ends with this client.", err=True)
                job.cancel().result()


class _Prompt:
    """Reads statements from a person, or from whatever is connected to stdin."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._names: list[str] = []

    def run(self) -> None:
        self._set_up_editing()
        if sys.stdin.isatty():
            click.echo("Penstock SQL. HELP; says what there is, QUIT; ends it.")
        waiting = ""
        while True:
            try:
                line = input((_GOES_ON if waiting.strip() else _PROMPT) if sys.stdin.isatty() else "")
            except KeyboardInterrupt:
                click.echo()
                waiting = ""
                continue
            except EOFError:
                break
            statements, waiting = split_statements(f"{waiting}{line}\n")
            for statement in statements:
                if not self._carry_out(statement):
                    return
        if without_comments(waiting):
            self._carry_out(waiting.strip())

    def _carry_out(self, statement: str) -> bool:
        """False if it was the last one."""
        match without_comments(statement).upper():
            case "QUIT" | "EXIT":
                return False
            case "HELP":
                click.echo(_HELP)
            case "CLEAR":
                click.clear()
            case _:
                self._client.run(statement)
                self._names = []
        return True

    def _set_up_editing(self) -> None:
        if not sys.stdin.isatty():
            return
        try:
            import atexit
            import readline
        except ImportError:  # Not on every system: then lines are edited as the terminal does.
            return
        with contextlib.suppress(OSError):
            readline.read_history_file(_HISTORY)
        readline.set_history_length(_MOST_HISTORY)
        readline.set_completer(self._completed)
        readline.parse_and_bind("tab: complete")

        def keep() -> None:
            with contextlib.suppress(OSError):  # A home that cannot be written to is no reason to fail.
                readline.write_history_file(_HISTORY)
                os.chmod(_HISTORY, 0o600)

        atexit.register(keep)

    def _completed(self, begun: str, number: int) -> str | None:
        if number == 0:
            self._names = self._names or _known_names(self._client.environment)
        known = [word if begun[:1].isupper() else word.lower() for word in _WORDS]
        fitting = [name for name in [*self._names, *known] if name.startswith(begun)]
        return fitting[number] if number < len(fitting) else None


def _known_names(environment: Any) -> list[str]:
    return [*environment.list_tables(), *environment.list_user_defined_functions()]
