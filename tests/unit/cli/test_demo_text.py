from __future__ import annotations

import socket

from penstock.demo.text_server import LINES, TextServer


def test_text_continues_after_its_last_line_and_starts_anew_for_each_reader():
    with TextServer(lines_per_second=10_000) as server:
        for _ in range(2):
            with socket.create_connection(("localhost", server.port)) as connection, connection.makefile() as lines:
                assert [next(lines).strip() for _ in range(len(LINES) + 1)] == [*LINES, LINES[0]]
