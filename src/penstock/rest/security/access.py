"""What the settings say about the way to a REST API over TCP: tokens and certificates, for servers and for clients."""

from __future__ import annotations

import logging
import socket
import ssl
from dataclasses import dataclass, field
from urllib.parse import quote

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.rest.security.access_token import (
    AccessToken,
    configured_token,
    is_loopback,
    make_own_token,
    own_token,
    remove_own_token,
)

_log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True)
class ServerAccess:
    """How a server on a TCP port lets clients in."""

    token: AccessToken | None
    """None: anybody who reaches the port may do everything."""
    tls: ssl.SSLContext | None = field(default=None, compare=False)
    own_port: int | None = None
    """The port for which the token was made; None if the settings gave it."""

    @staticmethod
    def to(listener: socket.socket, config: Configuration) -> ServerAccess:
        """For a socket that listens. Makes a token if the settings give none."""
        tls = _server_context(config)
        if not config.get(keys.REST_AUTH_ENABLED):
            return ServerAccess(None, tls)
        given = configured_token(config)
        if given is not None:
            return ServerAccess(given, tls)
        port = listener.getsockname()[1]
        return ServerAccess(make_own_token(port), tls, port)

    def page(self, address: str) -> str:
        """What to open in a browser for the dashboard of a server that is reached at `host:port`."""
        return page_address(address, self.token, self.tls is not None)

    def close(self) -> None:
        if self.own_port is not None and self.token is not None:
            remove_own_token(self.own_port, self.token)


def page_address(address: str, token: AccessToken | None, is_encrypted: bool) -> str:
    """The token follows the #: browsers do not send it, and the page takes it out of sight."""
    fragment = "" if token is None else f"#token={quote(token.secret, safe='')}"
    return f"{'https' if is_encrypted else 'http'}://{address}/{fragment}"


def reached_at(listener: socket.socket, config: Configuration) -> str:
    """`host:port` as others reach a socket that listens."""
    bound, port = listener.getsockname()[:2]
    host = config.get_optional(keys.REST_ADDRESS) or (socket.gethostname() if bound in _EVERYWHERE else bound)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_binding(host: str, config: Configuration) -> None:
    """Refuse to listen where others reach it, unless they need a token or that is meant."""
    if is_loopback(host):
        return
    if config.get(keys.REST_AUTH_ENABLED) and configured_token(config) is None:
        raise ConfigurationError(
            f"{keys.REST_BIND_ADDRESS.key}: {host} can be reached by other machines, and anybody who reaches the REST "
            f"API can run programs here; set {keys.REST_AUTH_TOKEN_FILE.key} to a file with a token that clients have "
            f"too, or {keys.REST_AUTH_ENABLED.key}: false if everybody who reaches it may run programs"
        )
    if not config.get(keys.SSL_REST_ENABLED):
        _log.warning(
            "the REST API listens on %s without encryption: anybody on the network can read the token; set %s",
            host,
            keys.SSL_REST_ENABLED.key,
        )


@dataclass(frozen=True)
class ClientAccess:
    """How a client gets in, and what it asks of a server before it trusts it."""

    token: AccessToken | None = None
    """From the settings; without it, that of this user's own server on this machine is looked up."""
    is_checked: bool = True
    """False: servers need no token, and are trusted without proof."""
    is_forwarded: bool = False
    """True: a port of this machine may lead to a server elsewhere, through a tunnel."""
    tls: ssl.SSLContext | None = field(default=None, compare=False)

    @staticmethod
    def of(config: Configuration) -> ClientAccess:
        return ClientAccess(
            configured_token(config),
            config.get(keys.REST_AUTH_ENABLED),
            config.get(keys.REST_AUTH_FORWARDED),
            _client_context(config),
        )

    def token_for(self, host: str, port: int) -> AccessToken | None:
        if self.token is not None or not is_loopback(host):
            return self.token
        return own_token(port)


OWN_SERVERS = ClientAccess()
"""For the servers of this user on this machine, where nothing is set."""


def _server_context(config: Configuration) -> ssl.SSLContext | None:
    if not config.get(keys.SSL_REST_ENABLED):
        return None
    keystore = config.get_optional(keys.SSL_REST_KEYSTORE)
    if keystore is None:
        raise ConfigurationError(
            f"{keys.SSL_REST_ENABLED.key} needs {keys.SSL_REST_KEYSTORE.key}: a PEM file with certificate and key"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_keystore(context, keystore, config)
    if config.get(keys.SSL_REST_AUTHENTICATION):
        context.verify_mode = ssl.CERT_REQUIRED
        _load_truststore(context, config)
    return context


def _client_context(config: Configuration) -> ssl.SSLContext | None:
    if not config.get(keys.SSL_REST_ENABLED):
        return None
    context = ssl.create_default_context()
    if config.get_optional(keys.SSL_REST_TRUSTSTORE) is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load_truststore(context, config)
    if config.get(keys.SSL_REST_AUTHENTICATION):
        keystore = config.get_optional(keys.SSL_REST_KEYSTORE)
        if keystore is None:
            raise ConfigurationError(f"{keys.SSL_REST_AUTHENTICATION.key} needs {keys.SSL_REST_KEYSTORE.key}")
        _load_keystore(context, keystore, config)
    return context


def _load_keystore(context: ssl.SSLContext, keystore: str, config: Configuration) -> None:
    password = config.get_optional(keys.SSL_REST_KEY_PASSWORD) or config.get_optional(keys.SSL_REST_KEYSTORE_PASSWORD)
    try:
        # An empty answer instead of none: OpenSSL would ask on the terminal.
        context.load_cert_chain(keystore, password=password or "")
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(_unreadable(keys.SSL_REST_KEYSTORE.key, keystore, error)) from error


def _load_truststore(context: ssl.SSLContext, config: Configuration) -> None:
    truststore = config.get_optional(keys.SSL_REST_TRUSTSTORE)
    if truststore is None:
        raise ConfigurationError(
            f"{keys.SSL_REST_AUTHENTICATION.key} needs {keys.SSL_REST_TRUSTSTORE.key}: a PEM file with the "
            f"certificates of those who are trusted"
        )
    try:
        context.load_verify_locations(truststore)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(_unreadable(keys.SSL_REST_TRUSTSTORE.key, truststore, error)) from error


def _unreadable(key: str, file: str, error: Exception) -> str:
    return (
        f"{key}: cannot read {file} ({error}); it must be a PEM file, and its key's password be right. Java's "
        f"keystores are converted by `openssl pkcs12 -in store.p12 -nodes -out store.pem`"
    )
