"""The flags of `run` and `info`, in Flink's spelling, and what they mean together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.cli.completion import complete_file
from penstock.cli.errors import NoSuchFile, report
from penstock.cli.program import Program
from penstock.common import config_keys as keys
from penstock.common.config_file import load_conf_dir, load_config_file
from penstock.common.configuration import Configuration
from penstock.common.exceptions import PenstockError, UnsupportedFeatureError
from penstock.compat.pyflink_alias import AS_ON_PYFLINK
from penstock.rest.client import Address
from penstock.rest.security.access import ClientAccess

F = TypeVar("F", bound=Callable[..., Any])

TARGETS = ("local", "spark", "inline", "remote")

# Flink's flags that scripts pass and that cannot be honoured: (spellings, takes a value, what to do instead).
_REFUSED: tuple[tuple[tuple[str, ...], bool, str], ...] = (
    (("-pyclientexec", "--pyClientExecutable"), True, "does not choose a Python; start penstock with the one you want"),
    (("-c", "--class"), True, "is for Java programs, and Penstock runs Python ones"),
    (("-C", "--classpath"), True, "is for Java programs; name jars with --conf and spark.jars"),
    (("-j", "--jarfile"), True, "is for Java programs, and Penstock runs Python ones"),
)


# Flags that are settings by another name.
_SETTINGS_BY_FLAG = {
    "pyarchives": "python.archives",
    "pyrequirements": "python.requirements",
    "pyexecutable": "python.executable",
}


_FOR_JOB_MANAGERS = (
    ("detached", keys.ATTACHED.key, "false"),
    ("shutdownOnAttachedExit", keys.SHUTDOWN_ON_EXIT.key, "true"),
)


@dataclass(frozen=True)
class Request:
    """What a `run` or `info` command line asks for."""

    program: Program
    configuration: dict[str, str]
    is_pyflink: bool
    is_debug: bool
    is_detached: bool
    """True if nobody waits for the job, which runs at a job manager."""


class ProgramCommand(click.Command):
    """A command whose options end where the user's program begins: what follows belongs to the program.

    The program begins at the first word that is not an option, or, once -py or -pym has named it, at the first option
    that is not one of ours.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = self._options_end(ctx, args)
        return super().parse_args(ctx, args if end is None else [*args[:end], "--", *args[end:]])

    def _options_end(self, ctx: click.Context, args: list[str]) -> int | None:
        takes_value = {
            name: not option.is_flag and not option.count
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            for name in option.opts
        }
        position, has_program = 0, False
        while position < len(args):
            word = args[position]
            name = word.partition("=")[0] if word not in takes_value else word
            if word == "--":
                return None
            if not word.startswith("-") or word == "-":
                return position
            if name in takes_value:
                has_program = has_program or name in ("-py", "--python", "-pym", "--pyModule")
                position += 2 if takes_value[name] and "=" not in word else 1
            elif takes_value.get(word[:2], False):  # -Dkey=value, -p2
                position += 1
            else:
                return position if has_program else None
        return None


def _complete_target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [target for target in TARGETS if target.startswith(incomplete)]


def program_options(command: F) -> F:
    """Add the program's flags to a command, which gets them as keywords for `read_request`."""
    options = [
        click.argument(
            "words", nargs=-1, type=click.UNPROCESSED, metavar="[JOB.PY] [ARGS]...", shell_complete=complete_file
        ),
        click.option(
            "-py",
            "--python",
            "script",
            metavar="FILE",
            shell_complete=complete_file,
            help="The job's script; the same as JOB.PY.",
        ),
        click.option("-pym", "--pyModule", "module", metavar="NAME", help="The job's module, instead of a script."),
        click.option("-pyfs", "--pyFiles", metavar="A,B", help="Python files, folders or zips to import from."),
        click.option("-pyarch", "--pyArchives", metavar="A#NAME,B", help="Archives to unpack for the job's functions."),
        click.option("-pyreq", "--pyRequirements", metavar="FILE#DIR", help="Packages to install for the job (pip)."),
        click.option("-pyexec", "--pyExecutable", metavar="FILE", help="The Python that runs the job's functions."),
        click.option("-p", "--parallelism", type=click.IntRange(min=1), help="Default parallelism of the job."),
        click.option(
            "-s", "--fromSavepoint", "savepoint", metavar="PATH", help="Start from a savepoint or checkpoint."
        ),
        click.option(
            "-n", "--allowNonRestoredState", is_flag=True, help="With -s: drop state that no operator of the job has."
        ),
        click.option(
            "-cm",
            "--claimMode",
            type=click.Choice(["claim", "no_claim"], case_sensitive=False),
            help="With -s. claim: the job may remove the savepoint later; no_claim: it stays yours (default).",
        ),
        click.option("-m", "--jobmanager", metavar="HOST:PORT[,...]", help="Have this job manager run the job."),
        click.option("-d", "--detached", is_flag=True, help="With -m: return as soon as the job is submitted."),
        click.option("-sae", "--shutdownOnAttachedExit", is_flag=True, help="With -m: the job ends with this process."),
        click.option("-D", "settings", multiple=True, metavar="KEY=VALUE", help="A setting; may be repeated."),
        click.option("--conf", type=click.Path(path_type=Path), help="A config.yaml or its folder; -D overrides it."),
        click.option(
            "-t",
            "--target",
            shell_complete=_complete_target,
            help="local or spark: on Spark (default); inline: without Spark; remote: at a job manager, as -m.",
        ),
        click.option("--master", metavar="URL", help="Spark master, such as local[4] or spark://host:7077."),
        click.option("--no-web", is_flag=True, help="No dashboard for this run."),
        click.option("--pyflink", is_flag=True, help="Run a PyFlink job as it is: pyflink imports give Penstock."),
        click.option("--debug", is_flag=True, envvar="PENSTOCK_DEBUG", help="On failure show the whole stack."),
        *(
            click.option(*names, f"refused_{number}", is_flag=not has_value, default=None, hidden=True)
            for number, (names, has_value, _) in enumerate(_REFUSED)
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def checked_request(given: dict[str, Any]) -> Request:
    """What the flags ask for; ends this process with a clear message if they are wrong."""
    try:
        return read_request(given)
    except PenstockError as error:
        report(error, given["debug"])
        sys.exit(1)


def read_request(given: dict[str, Any]) -> Request:
    """Check the flags and merge the settings: config file, then -D, then the other flags."""
    for number, (names, _, reason) in enumerate(_REFUSED):
        if given[f"refused_{number}"]:
            raise UnsupportedFeatureError(f"{'/'.join(names)} {reason}")
    target = given["target"]
    if target is not None and target not in TARGETS:
        raise UnsupportedFeatureError(
            f"-t/--target {target} is not supported, only {', '.join(TARGETS)} are; "
            "to run on a Spark cluster name it with --master, for example --master spark://host:7077"
        )
    configuration = read_settings(given["conf"], given["settings"])
    configuration.update({key: given[flag] for flag, key in _SETTINGS_BY_FLAG.items() if given[flag] is not None})
    if given["parallelism"] is not None:
        configuration["parallelism.default"] = str(given["parallelism"])
    if target is not None:
        configuration["execution.target"] = target
    if given["master"] is not None:
        configuration["spark.master"] = given["master"]
    if given["no_web"]:
        configuration[keys.WEB_UI_ENABLED.key] = "false"
    configuration.update(_recovery(given))
    configuration.update(_cluster(given, configuration))
    if given["pyflink"]:
        configuration = {**AS_ON_PYFLINK, **configuration}
    program = _program(given)
    if program.python_files:
        files = [configuration.get("python.files"), *program.python_files]
        configuration["python.files"] = ",".join(filter(None, files))
    is_detached = Configuration.from_dict(configuration).get_optional(keys.ATTACHED) is False
    return Request(program, configuration, given["pyflink"], given["debug"], is_detached)


def _cluster(given: dict[str, Any], configuration: dict[str, str]) -> dict[str, str]:
    """The settings for a job that goes to a job manager."""
    settings = {}
    if given["jobmanager"] is not None:
        access = ClientAccess.of(Configuration.from_dict(configuration))
        addresses = [Address.parse(each.strip(), access) for each in given["jobmanager"].split(",")]
        is_one = len(addresses) == 1
        settings = {
            keys.TARGET.key: "remote",
            keys.REST_ADDRESS.key: addresses[0].host if is_one else given["jobmanager"],
            keys.REST_PORT.key: str(addresses[0].port),
        }
        if Configuration.from_dict(configuration).get_optional(keys.HIGH_AVAILABILITY) is not None:
            settings[keys.HIGH_AVAILABILITY.key] = "NONE"  # The job manager named here counts, not an elected one.
    is_remote = Configuration.from_dict({**configuration, **settings}).get(keys.TARGET).lower() == "remote"
    for flag, key, value in _FOR_JOB_MANAGERS:
        if given[flag.lower()]:
            if not is_remote:
                raise click.UsageError(
                    f"--{flag} goes with a job manager, which runs the job when this process has ended: start one with "
                    f"`penstock jobmanager start --daemon` and add -m localhost:8081"
                )
            settings[key] = value
    return settings


def _recovery(given: dict[str, Any]) -> dict[str, str]:
    """The settings for starting from a savepoint."""
    if given["savepoint"] is None:
        if given["allownonrestoredstate"] or given["claimmode"] is not None:
            raise click.UsageError("-n and -cm go with -s, which names the savepoint to start from")
        return {}
    settings = {keys.SAVEPOINT_PATH.key: given["savepoint"]}
    if given["allownonrestoredstate"]:
        settings[keys.IGNORE_UNCLAIMED_STATE.key] = "true"
    if given["claimmode"] is not None:
        settings[keys.CLAIM_MODE.key] = given["claimmode"].upper()
    return settings


def read_settings(conf: Path | None, words: Sequence[str]) -> dict[str, str]:
    """The settings of the config file, and over them those of -D."""
    from_file = load_conf_dir() if conf is None else load_config_file(conf)
    return {**from_file, **dict(_setting(word) for word in words)}


def _setting(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"expected key=value, got {word!r}", param_hint="-D")
    return key.strip(), value


def _program(given: dict[str, Any]) -> Program:
    words: tuple[str, ...] = given["words"]
    script, module = given["script"], given["module"]
    files = tuple(file for file in (given["pyfiles"] or "").split(",") if file)
    for file in files:
        if not Path(file).exists():
            raise NoSuchFile(file)
    if script is not None and module is not None:
        raise click.UsageError("-py names a script and -pym a module: give only one of them")
    if module is not None:
        return Program(module, True, words, files)
    if script is None:
        if not words:
            raise click.UsageError("which job? Name a script (job.py), or a module with -pym")
        script, *rest = words
        # As after any command, `--` only says that what follows belongs to the program.
        words = tuple(rest[1:] if rest[:1] == ["--"] else rest)
    if not Path(script).is_file():
        raise NoSuchFile(script)
    return Program(script, False, words, files)
