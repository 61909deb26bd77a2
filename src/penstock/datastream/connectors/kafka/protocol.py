"""The few requests of Kafka's protocol that its Python client does not offer: encoding, and a connection.

Only what `transactions` needs. Requests are in old versions that all brokers from Kafka 3.0 to 4.x take, and all but
one of them in the plain encoding, without Kafka's tagged fields.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.common.exceptions import ConnectorError

if TYPE_CHECKING:
    from ssl import SSLContext


class RequestWriter:
    """A request's body."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def int8(self, value: int) -> RequestWriter:
        return self._pack(">b", value)

    def int16(self, value: int) -> RequestWriter:
        return self._pack(">h", value)

    def int32(self, value: int) -> RequestWriter:
        return self._pack(">i", value)

    def int64(self, value: int) -> RequestWriter:
        return self._pack(">q", value)

    def string(self, value: str) -> RequestWriter:
        encoded = value.encode()
        self.int16(len(encoded))
        self._parts.append(encoded)
        return self

    def blob(self, value: bytes) -> RequestWriter:
        self.int32(len(value))
        self._parts.append(value)
        return self

    def varint(self, value: int) -> RequestWriter:
        while value >= 0x80:
            self._parts.append(bytes([value & 0x7F | 0x80]))
            value >>= 7
        self._parts.append(bytes([value]))
        return self

    def compact_string(self, value: str) -> RequestWriter:
        encoded = value.encode()
        self.varint(len(encoded) + 1)
        self._parts.append(encoded)
        return self

    def compact_length(self, length: int) -> RequestWriter:
        return self.varint(length + 1)

    def no_tags(self) -> RequestWriter:
        return self.varint(0)

    def done(self) -> bytes:
        return b"".join(self._parts)

    def _pack(self, layout: str, value: int) -> RequestWriter:
        self._parts.append(struct.pack(layout, value))
        return self


class ResponseReader:
    """A response's body, read from front to back."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def int8(self) -> int:
        return self._unpack(">b")

    def int16(self) -> int:
        return self._unpack(">h")

    def int32(self) -> int:
        return self._unpack(">i")

    def int64(self) -> int:
        return self._unpack(">q")

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode()

    def blob(self) -> bytes:
        return self._take(max(self.int32(), 0))

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_string(self) -> str:
        return self._take(self.varint() - 1).decode()

    def compact_length(self) -> int:
        return self.varint() - 1

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self._take(self.varint())

    def _take(self, length: int) -> bytes:
        taken = self._content[self._at : self._at + length]
        self._at += length
        if len(taken) != length:
            raise ConnectorError(f"Kafka: an answer of {len(self._content)} bytes ends too early")
        return taken

    def _unpack(self, layout: str) -> int:
        value: int = struct.unpack(layout, self._take(struct.calcsize(layout)))[0]
        return value


@dataclass(frozen=True)
class Security:
    """How a connection is protected, with librdkafka's names for the settings."""

    uses_tls: bool = False
    sasl_mechanism: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(settings: Mapping[str, str]) -> Security:
        """From a client's settings; raises for what only the C client can do."""
        protocol = settings.get("security.protocol", "plaintext").upper()
        if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
            raise ValueError(
                f"Kafka: security.protocol must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, got {protocol!r}"
            )
        mechanism = None
        if protocol.startswith("SASL"):
            mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI")).upper()
            if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
                raise ValueError(
                    f"Kafka: transactions cannot be committed with sasl.mechanism {mechanism}; use PLAIN, "
                    f"SCRAM-SHA-256 or SCRAM-SHA-512, or the delivery guarantee AT_LEAST_ONCE"
                )
        return Security(protocol.endswith("SSL"), mechanism, dict(settings))


class BrokerConnection:
    """A connection to one broker; one request at a time. Failures of the network are OSErrors."""

    def __init__(self, host: str, port: int, client_id: str, security: Security, timeout_s: float) -> None:
        self.address = f"{host}:{port}"
        self._client_id = client_id
        self._correlation = 0
        self._socket = _connected(host, port, security, timeout_s)
        if security.sasl_mechanism is not None:
            try:
                self._authenticate(security.sasl_mechanism, security.settings)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        self._socket.close()

    def ask(self, api: int, version: int, body: bytes, is_flexible: bool = False) -> ResponseReader:
        """Send a request and wait for its answer."""
        self._correlation += 1
        header = RequestWriter().int16(api).int16(version).int32(self._correlation).string(self._client_id)
        if is_flexible:
            header.no_tags()
        message = header.done() + body
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        answer = ResponseReader(self._received(struct.unpack(">i", self._received(4))[0]))
        if answer.int32() != self._correlation:
            raise ConnectorError(f"Kafka: {self.address} answered a different request than the one it was sent")
        if is_flexible:
            answer.skip_tags()
        return answer

    def _received(self, length: int) -> bytes:
        parts = []
        while length > 0:
            part = self._socket.recv(length)
            if not part:
                raise ConnectionError(f"Kafka: {self.address} closed the connection")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    # --- SASL --------------------------------------------------------------------------------------------------------

    def _authenticate(self, mechanism: str, settings: Mapping[str, str]) -> None:
        handshake = self.ask(17, 1, RequestWriter().string(mechanism).done())
        self._check(handshake.int16(), f"does not know SASL mechanism {mechanism}")
        user, password = settings.get("sasl.username", ""), settings.get("sasl.password", "")
        if mechanism == "PLAIN":
            self._token(f"\0{user}\0{password}".encode())
            return
        exchange = ScramExchange(mechanism, user, password)
        answer = self._token(exchange.first_message())
        exchange.check_server(self._token(exchange.final_message(answer)))

    def _token(self, token: bytes) -> bytes:
        answer = self.ask(36, 0, RequestWriter().blob(token).done())
        error, message = answer.int16(), answer.string()
        self._check(error, message or "refused the user name or password")
        return answer.blob()

    def _check(self, error: int, what: str) -> None:
        if error:
            raise ConnectorError(f"Kafka: {self.address} {what} (error {error}); see sasl.mechanism, sasl.username")


class ScramExchange:
    """The messages by which a client proves that it knows a password, without sending it (RFC 5802)."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str | None = None) -> None:
        self._hash = "sha512" if mechanism.endswith("512") else "sha256"
        self._password = password.encode()
        self._nonce = nonce or base64.b64encode(os.urandom(24)).decode()
        self._first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        self._server_signature = b""

    def first_message(self) -> bytes:
        return f"n,,{self._first}".encode()

    def final_message(self, server_first: bytes) -> bytes:
        fields = _scram_fields(server_first)
        if not fields.get("r", "").startswith(self._nonce):
            raise ConnectorError("Kafka: SCRAM failed, the broker did not repeat the client's nonce")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, base64.b64decode(fields["s"]), int(fields["i"]))
        without_proof = f"c=biws,r={fields['r']}"
        signed = f"{self._first},{server_first.decode()},{without_proof}".encode()
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._mac(self._mac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check_server(self, server_final: bytes) -> None:
        """Raise unless the broker knows the password, too."""
        signature = base64.b64decode(_scram_fields(server_final).get("v", ""))
        if not hmac.compare_digest(signature, self._server_signature):
            raise ConnectorError("Kafka: SCRAM failed, the broker could not prove that it knows the password")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def _scram_fields(message: bytes) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.decode().split(",") if "=" in part)


def _connected(host: str, port: int, security: Security, timeout_s: float) -> socket.socket:
    plain = socket.create_connection((host, port), timeout=timeout_s)
    if not security.uses_tls:
        return plain
    try:
        return _tls(security.settings).wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def _tls(settings: Mapping[str, str]) -> SSLContext:
    import ssl  # Slow to import, and most clusters do without.

    context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"))
    if settings.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        context.check_hostname = False
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "ssl.certificate.location" in settings:
        context.load_cert_chain(
            settings["ssl.certificate.location"], settings.get("ssl.key.location"), settings.get("ssl.key.password")
        )
    return context
