"""What the verbs for running jobs have in common: flags, and the short flags that mean something else in each verb."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.cli.errors import report
from penstock.cli.locate import manager_address
from penstock.cli.options import read_settings
from penstock.common.exceptions import PenstockError
from penstock.rest.client import Address

F = TypeVar("F", bound=Callable[..., Any])

_AMBIGUOUS = ("-p", "-d", "-s")
_SHORT_FLAGS = "penstock.short-flags"


class JobCommand(click.Command):
    """A verb for running jobs. Remembers which of the short flags with several meanings were typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_SHORT_FLAGS] = [word for word in args if word in _AMBIGUOUS]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # As on stderr: the name of a job may have characters that the terminal does not know.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except PenstockError as error:
            report(error, bool(ctx.params.get("debug")))
            sys.exit(1)


def say_meaning(flag: str, meaning: str) -> None:
    """Say what a short flag means here, if it was typed; on stderr, so that no script reads it."""
    if flag in click.get_current_context().meta[_SHORT_FLAGS]:
        click.echo(f"{flag} is {meaning} here", err=True)


class Answer:
    """What a verb prints: sentences like Flink's, or with --json one JSON object at the end."""

    def __init__(self, is_json: bool) -> None:
        self.is_json = is_json

    def say(self, text: str) -> None:
        if not self.is_json:
            click.echo(text)

    def give(self, result: Mapping[str, Any]) -> None:
        if self.is_json:
            click.echo(json.dumps(result))


def common_options(command: F) -> F:
    """Flags of all verbs but run and info; the command gets `configuration: dict[str, str]` and `answer: Answer`."""

    def with_settings(*args: Any, is_json: bool, conf: Path | None, settings: Any, debug: bool, **rest: Any) -> Any:
        return command(*args, answer=Answer(is_json), configuration=read_settings(conf, settings), **rest)

    return _decorated(
        command,
        with_settings,
        click.option("-D", "settings", multiple=True, metavar="KEY=VALUE", help="A setting; may be repeated."),
        click.option("--conf", type=click.Path(path_type=Path), help="A config.yaml or its folder."),
        click.option("--json", "is_json", is_flag=True, help="Print one JSON object and nothing else."),
        click.option("--debug", is_flag=True, envvar="PENSTOCK_DEBUG", help="On failure show the whole stack."),
    )


def job_options(command: F) -> F:
    """Flags of the verbs for running jobs; the command also gets `manager: Address | None`, the job manager to ask."""

    def with_manager(*args: Any, manager: str | None, configuration: dict[str, str], **rest: Any) -> Any:
        address: Address | None = manager_address(manager, configuration)
        return command(*args, manager=address, configuration=configuration, **rest)

    option = click.option(
        "-m",
        "--jobmanager",
        "manager",
        metavar="HOST:PORT[,...]",
        help="Ask this job manager, or the one of these that leads.",
    )
    return common_options(_decorated(command, with_manager, option))


def _decorated(command: F, outer: Any, *options: Callable[[Any], Any]) -> F:
    """`outer` in the place of `command`, with its name, docstring and flags, and with more flags."""
    outer.__name__, outer.__doc__ = command.__name__, command.__doc__
    outer.__click_params__ = list(getattr(command, "__click_params__", []))
    for option in reversed(options):
        outer = option(outer)
    return outer  # type: ignore[no-any-return]
