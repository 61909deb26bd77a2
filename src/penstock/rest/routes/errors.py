"""What a request was refused for."""

from __future__ import annotations

from penstock.common.exceptions import PenstockError


class RestError(PenstockError):
    """A request cannot be answered; the client gets `status` and the message as Flink's `{"errors": [...]}`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def not_found(message: str) -> RestError:
    return RestError(404, message)


def bad_request(message: str) -> RestError:
    return RestError(400, message)
