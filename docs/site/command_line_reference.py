"""The page of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click

from penstock.cli import main

_OPENING = """# Command line

`penstock` and `python -m penstock` are the same. [Running jobs](../operations.md) shows what each verb is for.

| Exit code | Meaning |
|---|---|
| 0 | the job finished, or the verb did what it was asked for |
| 1 | the job failed or was cancelled from elsewhere, or the verb could not do it |
| 2 | the command line is wrong |
| 130 | interrupted by Ctrl-C |

One of these lines makes your shell complete verbs, options, files and the ids of running jobs:

```sh
eval "$(_PENSTOCK_COMPLETE=bash_source penstock)"         # in ~/.bashrc (Bash 4.4 or newer)
eval "$(_PENSTOCK_COMPLETE=zsh_source penstock)"          # in ~/.zshrc
_PENSTOCK_COMPLETE=fish_source penstock | source          # in ~/.config/fish/config.fish
```
"""


def page() -> str:
    """A section for each verb, with its usage and its options."""
    return "\n".join([_OPENING, *(_section(path, command) for path, command in _commands("penstock", main))])


def _commands(path: str, group: click.Command) -> Iterator[tuple[str, click.Command]]:
    assert isinstance(group, click.Group)
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _commands(f"{path} {name}", command)


def _section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    rows = [record for record in (_row(each, context) for each in command.get_params(context)) if record]
    table = "\n".join(["| Option | Meaning |", "|---|---|", *rows]) if rows else ""
    return f"## {path}\n\n```text\n{usage}\n```\n\n{_plain(command.help)}\n\n{table}\n"


def _row(parameter: click.Parameter, context: click.Context) -> str | None:
    record = parameter.get_help_record(context)
    if record is None or not record[1]:
        return None
    names, meaning = (text.replace("|", r"\|") for text in record)
    return f"| `{names}` | {_plain(meaning)} |"


def _plain(text: str | None) -> str:
    return (text or "").replace("\b", "").replace("<", "&lt;").strip()
