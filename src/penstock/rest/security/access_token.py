"""The token that lets a client use a REST API over TCP, and by which the server proves to the client who it is.

A server whose settings give none makes one when it starts. It lies in the folder that only its user can enter,
so commands of the same user find it by the port, and nobody else does.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.common.private_folder import open_new
from penstock.rest import sockets

_log = logging.getLogger(__name__)

PROOF = "/auth/proof"
"""Where a server proves that it knows the token, to clients who have not shown it yet."""

_NONCE = re.compile(r"[0-9a-f]{64}")
_TOKEN = re.compile(r"[!-~]{16,512}")


@dataclass(frozen=True)
class AccessToken:
    """A secret that server and clients share."""

    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.secret):
            raise ConfigurationError(
                f"a token has 16 to 512 printable ASCII characters without spaces, and this one has "
                f"{len(self.secret)}, or others among them; `python -c 'import secrets; print(secrets.token_hex(32))'` "
                f"makes a good one"
            )

    @staticmethod
    def random() -> AccessToken:
        return AccessToken(secrets.token_hex(32))

    def matches(self, given: str) -> bool:
        """True for the token itself. The answer for a wrong one takes just as long."""
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.secret.encode())

    def proof(self, nonce: str, host: str, port: int) -> str:
        """Proves that its maker knows the token and listens at this address: it is of no use at another one."""
        statement = f"penstock server {nonce} {ipaddress.ip_address(host)} {port}"
        return hmac.new(self.secret.encode(), statement.encode(), hashlib.sha256).hexdigest()


def new_nonce() -> str:
    return secrets.token_hex(32)


def is_nonce(text: str) -> bool:
    return _NONCE.fullmatch(text) is not None


def configured_token(config: Configuration) -> AccessToken | None:
    """The token that the settings give, or the file that they name; None if they say nothing."""
    given, file = config.get_optional(keys.REST_AUTH_TOKEN), config.get_optional(keys.REST_AUTH_TOKEN_FILE)
    if given is not None:
        return AccessToken(given.strip())
    return None if file is None else _read(Path(file).expanduser())


def _read(file: Path) -> AccessToken:
    try:
        content = file.read_text()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{keys.REST_AUTH_TOKEN_FILE.key}: cannot read {file} ({error})") from error
    if mode & 0o044:
        _log.warning("%s: other users can read %s; `chmod 600` it", keys.REST_AUTH_TOKEN_FILE.key, file)
    return AccessToken(content.strip())


def _file_of(port: int) -> Path:
    return sockets.folder() / f"token-{port}"


_locks: dict[Path, int] = {}
"""The token files of this process, open and locked as long as it lives or until they are removed."""


def make_own_token(port: int) -> AccessToken:
    """A new token for a server of this user on a port. Those of servers that were killed are removed."""
    token = AccessToken.random()
    file = _file_of(port)
    partial = file.with_name(f".{secrets.token_hex(8)}")
    with open_new(partial) as out:
        out.write(token.secret.encode())
        lock = os.dup(out.fileno())
    fcntl.flock(lock, fcntl.LOCK_EX)
    with _alone_in(file.parent):
        _remove_dead_tokens(file.parent)
        partial.rename(file)
    _release(file)
    _locks[file] = lock
    return token


def _release(file: Path) -> None:
    lock = _locks.pop(file, None)
    if lock is not None:
        os.close(lock)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Only one process at a time puts tokens into the folder, or takes dead ones away."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _remove_dead_tokens(folder: Path) -> None:
    for file in folder.glob("token-*"):
        # A lock that is taken: its server lives. A file that is not there: its server has just ended.
        with contextlib.suppress(BlockingIOError, FileNotFoundError), open(file, "rb") as content:
            fcntl.flock(content, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.unlink(missing_ok=True)


def own_token(port: int) -> AccessToken | None:
    """The token of the server that this user has, or had, on a port."""
    try:
        return AccessToken(_file_of(port).read_text())
    except FileNotFoundError:
        return None


def remove_own_token(port: int, token: AccessToken) -> None:
    """Take a token away, unless a later server has put its own there."""
    file = _file_of(port)
    if own_token(port) == token:
        file.unlink(missing_ok=True)
        _release(file)


def is_loopback(host: str) -> bool:
    """True if only this machine is reached by the name."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
