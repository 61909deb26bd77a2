"""Real servers for the tests: Kafka, PostgreSQL and Redis, on loopback, in folders of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from free_ports import free_port

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 60


class ServerUnavailableError(Exception):
    """The server is not installed; says what to do."""


_WITH_SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


class Server:
    """A server process. `kill` is the end of a crash: SIGKILL; `start` begins again with the same data."""

    name = "server"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def check(self) -> Any:
        """Ask the server something; raises while it is not ready."""
        raise NotImplementedError

    def start(self) -> None:
        # A group of its own: an interrupt of the tests does not reach it before it is stopped.
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                **self.rights(),
            )
        wait_until(self._is_ready, f"{self.name} to start", lambda: f"its log ends with {self._end_of_log()}")

    def rights(self) -> dict[str, Any]:
        return {}

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGKILL)  # The folder is thrown away: there is nothing to save.

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            os.killpg(process.pid, how)
            process.wait()

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self._process.returncode}; its log: {self._end_of_log()}")
        try:
            self.check()
        except Exception:
            return False
        return True

    def _end_of_log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]


def wait_until(
    condition: Callable[[], bool], what: str, told: Callable[[], str] = str, timeout_s: float = START_TIMEOUT_S
) -> None:
    until = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"waited {timeout_s} s for {what}; {told()}")
        time.sleep(0.02)


class KafkaServer(Server):
    """One broker that is its own controller."""

    name = "Kafka"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._classpath = _kafka_classpath()
        self._java = _java()
        broker, controller = free_port(), free_port()
        self.bootstrap_servers = f"127.0.0.1:{broker}"
        self._settings = folder / "server.properties"
        self._settings.write_text(self.settings(broker, controller))
        format_options = ["-t", "cGVuc3RvY2stdGVzdHMxMg", "-c", str(self._settings), *self.format_options()]
        command = [*self._run("kafka.tools.StorageTool"), "format", *format_options]
        subprocess.run(command, check=True, capture_output=True)

    def settings(self, broker: int, controller: int) -> str:
        return _BROKER_SETTINGS.format(broker=broker, controller=controller, data=self.folder / "data")

    def format_options(self) -> list[str]:
        return []

    def _run(self, main: str) -> list[str]:
        quick = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=ERROR"]
        return [self._java, *quick, "-cp", self._classpath, main]

    def command(self) -> list[str]:
        return [*self._run("kafka.Kafka"), str(self._settings)]

    def check(self) -> None:
        from confluent_kafka.admin import AdminClient

        host, _, port = self.bootstrap_servers.partition(":")
        socket.create_connection((host, int(port)), timeout=1).close()  # The client would complain in the log
        assert AdminClient({"bootstrap.servers": self.bootstrap_servers}).list_topics(timeout=5).brokers

    @property
    def topics(self) -> Any:
        """Makes, fills and reads topics; see `topics`."""
        from topics import Topics

        return Topics(self.bootstrap_servers)


class SecuredKafkaServer(KafkaServer):
    """A broker that is also reached with a password, with and without TLS. The certificate is in `certificate`."""

    user, password = "alice", "alice-secret"

    def settings(self, broker: int, controller: int) -> str:
        self.certificate = self.folder / "certificate.pem"
        sasl, tls = free_port(), free_port()
        self.sasl_servers, self.tls_servers = f"127.0.0.1:{sasl}", f"127.0.0.1:{tls}"
        key_store = self._key_store()
        own = _SECURED_SETTINGS.format(key_store=key_store)
        for listener in ("sasl_plaintext", "sasl_ssl"):
            own += _LOGIN.format(listener=listener, user=self.user, password=self.password, scram=_SCRAM)
        ports = f"SASL_PLAINTEXT://127.0.0.1:{sasl},SASL_SSL://127.0.0.1:{tls}"
        text = super().settings(broker, controller)
        text = text.replace(",CONTROLLER://", f",{ports},CONTROLLER://")
        text = text.replace("advertised.listeners=", f"advertised.listeners={ports},")
        return text.replace("map=", "map=SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,") + own

    def _key_store(self) -> Path:
        if shutil.which("openssl") is None:
            raise ServerUnavailableError("openssl is not installed, which makes the broker's certificate")
        key, store = self.folder / "key.pem", self.folder / "store.pem"
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", *names]
        subprocess.run([*made, "-keyout", key, "-out", self.certificate], check=True, capture_output=True)
        store.write_text(key.read_text() + self.certificate.read_text())
        return store

    def format_options(self) -> list[str]:
        kinds = ("SCRAM-SHA-256", "SCRAM-SHA-512")
        login = f"[name={self.user},password={self.password}]"
        return [part for kind in kinds for part in ("--add-scram", f"{kind}={login}")]


_SECURED_SETTINGS = """\
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
ssl.keystore.type=PEM
ssl.keystore.location={key_store}
ssl.client.auth=none
"""
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_LOGIN = """\
listener.name.{listener}.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_{user}="{password}";
listener.name.{listener}.scram-sha-256.sasl.jaas.config={scram}
listener.name.{listener}.scram-sha-512.sasl.jaas.config={scram}
"""


_BROKER_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=200
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
controller.quorum.election.timeout.ms=100
controller.quorum.fetch.timeout.ms=500
"""


def _java() -> str:
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if java is None:
        raise ServerUnavailableError("Kafka needs Java; run: make servers")
    return java


def _kafka_classpath() -> str:
    folder = Path(os.environ.get("PENSTOCK_KAFKA_JARS") or ROOT / ".servers" / "kafka")
    if not list(folder.glob("kafka_*.jar")):
        raise ServerUnavailableError(f"Kafka's jars are not in {folder}; run: make servers")
    return f"{folder}/*"


class PostgresServer(Server):
    """A database cluster with prepared transactions. Anybody on this machine may log in as `penstock`."""

    name = "PostgreSQL"
    user = "penstock"
    database = "penstock"

    def __init__(self, folder: Path, max_prepared_transactions: int = 64) -> None:
        super().__init__(folder)
        self._max_prepared_transactions = max_prepared_transactions
        self._programs = _postgres_programs()
        self.port = free_port()
        self._data = folder / "data"
        if os.getuid() == 0:  # PostgreSQL refuses to run as root.
            shutil.chown(folder, "postgres", "postgres")
        initdb = [self._programs / "initdb", "-D", self._data, "-U", self.user, "-A", "trust", "-N", "-E", "UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **self.rights())

    def rights(self) -> dict[str, Any]:
        return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "max_prepared_transactions": self._max_prepared_transactions,
            "fsync": "off",  # A killed server loses nothing by that, only a killed machine does.
        }
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self._data), *flags]

    def start(self) -> None:
        wait_until(self._has_started, f"{self.name} to start", self._end_of_log)
        with self.connect("postgres") as connection:
            if not connection.execute("select 1 from pg_database where datname = %s", [self.database]).fetchone():
                connection.execute(f"create database {self.database}")

    def _has_started(self) -> bool:
        """False while processes of a killed server, which are in sessions of their own, have not yet gone."""
        try:
            super().start()
        except AssertionError:
            if "pre-existing shared memory block" not in self._end_of_log().splitlines()[-2]:
                raise
            return False
        return True

    def check(self) -> None:
        self.connect("postgres").close()

    def connect(self, database: str | None = None) -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=self.user, dbname=database or self.database, autocommit=True
        )

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}"


def _postgres_programs() -> Path:
    on_path = shutil.which("initdb")
    folders = [Path(on_path).parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise ServerUnavailableError("PostgreSQL's initdb is not installed; run: make servers")


class MySqlServer(Server):
    """MariaDB, which speaks MySQL's protocol. The user `penstock` with the password `secret` may do everything."""

    name = "MariaDB"
    user, password, database = "penstock", "secret", "penstock"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._program, install = shutil.which("mariadbd", path=_WITH_SBIN), shutil.which("mariadb-install-db")
        if self._program is None or install is None:
            raise ServerUnavailableError("MariaDB is not installed; run: make servers")
        self.port = free_port()
        self._data = folder / "data"
        if os.getuid() == 0:  # It refuses to run as root.
            shutil.chown(folder, "mysql", "mysql")
        command = [install, "--no-defaults", f"--datadir={self._data}", "--auth-root-authentication-method=normal"]
        subprocess.run([*command, "--skip-test-db"], check=True, capture_output=True, cwd=folder, **self.rights())
        (folder / "init.sql").write_text(
            f"create database if not exists {self.database};\n"
            f"create user if not exists '{self.user}'@'%' identified by '{self.password}';\n"
            f"grant all on *.* to '{self.user}'@'%';\n"
        )

    def rights(self) -> dict[str, Any]:
        return {"user": "mysql", "group": "mysql", "extra_groups": []} if os.getuid() == 0 else {}

    def command(self) -> list[str]:
        return [
            str(self._program), "--no-defaults", f"--datadir={self._data}", f"--port={self.port}",
            "--bind-address=127.0.0.1", f"--socket={self.folder}/socket", f"--init-file={self.folder}/init.sql",
            "--innodb-flush-log-at-trx-commit=0",
        ]  # fmt: skip

    def check(self) -> None:
        self.connect().close()

    def connect(self) -> Any:
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=self.user, password=self.password, database=self.database,
            autocommit=True,
        )  # fmt: skip

    @property
    def url(self) -> str:
        return f"jdbc:mysql://127.0.0.1:{self.port}/{self.database}?useSSL=false&serverTimezone=UTC"


class RedisServer(Server):
    name = "Redis"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        program = shutil.which("redis-server")
        if program is None:
            raise ServerUnavailableError("redis-server is not installed; run: make servers")
        self._program = program
        self.port = free_port()

    def command(self) -> list[str]:
        return [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]

    def check(self) -> None:
        self.client().ping()

    def client(self) -> Any:
        import redis

        return redis.Redis(port=self.port, decode_responses=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"
