"""Lets a leader find out that a later one has begun."""

from __future__ import annotations

from penstock.checkpoint.folders import Folder
from penstock.common.exceptions import LeadershipLostError

TOKEN_DIGITS = 20


class Fence:
    """The tokens of all who began to lead, as files in a folder.

    The folder must show a file to everybody from the moment that `write` has returned, as local file systems, HDFS and
    today's object stores do.
    """

    def __init__(self, folder: Folder, token: int) -> None:
        self._folder = folder
        self.token = token

    def put_up(self) -> None:
        """Begin to lead: the former leader can confirm nothing from now on. Raises if another one began later."""
        self._folder.make()
        self._folder.write(_name(self.token), b"")
        self.check()
        for token in self._tokens():
            if token < self.token:
                self._folder.delete(_name(token))

    def check(self) -> None:
        """Raise LeadershipLostError if another leader began later."""
        tokens = self._tokens()
        newest = max(tokens, default=self.token)
        if newest > self.token:
            raise LeadershipLostError(f"leadership {self.token} has ended: another process has leadership {newest} now")
        if self.token not in tokens:  # A folder that is not there looks empty: nothing can be known then.
            raise FileNotFoundError(f"{self._folder.path_of(_name(self.token))}, by which a leader knows that it leads")

    def _tokens(self) -> list[int]:
        return fence_tokens(self._folder)


def fence_tokens(folder: Folder) -> list[int]:
    """The tokens of those who began to lead, by the folder of their fences. Tokens of former leaders may be gone."""
    return [int(name) for name in folder.names() if name.isdigit()]


def _name(token: int) -> str:
    return f"{token:0{TOKEN_DIGITS}d}"
