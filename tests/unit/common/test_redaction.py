"""No secret is shown, wherever it stands."""

from __future__ import annotations

import dataclasses
import importlib
import json
import logging
import pkgutil
import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock.datastream.connectors
import penstock.datastream.formats
import penstock.jobmaster
import penstock.rest
from penstock.common import Configuration, ExecutionConfig
from penstock.common.redaction import (
    HIDDEN,
    RedactingFormatter,
    is_secret,
    redacted_repr,
    redacted_settings,
    redacted_text,
)
from penstock.common.typeinfo import Types
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from penstock.rest.documents.jobs import all_settings, failure_cause

SECRET_KEYS = [
    "sasl.jaas.config",
    "properties.sasl.jaas.config",
    "sasl.password",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.key.pem",
    "fs.azure.account.key",
    "fs.azure.account.key.myaccount.blob.core.windows.net",
    "fs.azure.sas.container.account.token",
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "s3.access-key",
    "s3.secret-key",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.session.token",
    "spark.authenticate.secret",
    "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY",
    "google.cloud.auth.service.account.private-key",
    "private-key",
    "private_key",
    "passwd",
    "db.pwd",
    "security.ssl.rest.key-password",
    "security.ssl.rest.keystore-password",
    "rest.auth.token",
    "basic.auth.user.info",
    "basic.auth.credentials.source",
    "schema.registry.basic-auth.user-info",
    "api-key",
    "X-Api-Key",
    "apiKey",
    "Authorization",
    "Proxy-Authorization",
    "Set-Cookie",
    "SharedAccessKey",
    "AccountKey",
    "connectionString",
    "security.delegation.token",
    "fs.gs.encryption.key",
    "metrics.reporter.dghttp.apikey",
]
HARMLESS_KEYS = [
    "parallelism.default",
    "execution.checkpointing.interval",
    "key.deserializer",
    "state.backend.type",
    "pipeline.jobvertex-parallelism-overrides",
    "high-availability.cluster-id",
    "python.files",
    "spark.master",
    "spark.sql.shuffle.partitions",
    "group.id",
    "bootstrap.servers",
    "pipeline.auto-generate-uids",
    "rest.bind-address",
    "partition.keys",
]

PLAIN = string.ascii_letters + string.digits
secrets = st.text(PLAIN, min_size=8, max_size=30).map(lambda text: f"Zq{text}")
"""Long, and with a beginning that stands nowhere else."""
url_secrets = st.text(PLAIN + "!$*+-._~%@=", min_size=6, max_size=30).map(lambda text: f"Zq{text}")
quoted_secrets = st.text(PLAIN + " ,;&=:/@#?!<>{}[]()", min_size=6, max_size=30).map(lambda text: f"Zq{text}")

URLS = [
    "redis://:{}@host:6379/0",
    "rediss://user:{}@host:6379/0",
    "postgresql://user:{}@host:5432/db",
    "jdbc:postgresql://user:{}@host/db?ssl=true",
    "https://user:{}@host/path?x=1",
    "http://{}@host/path",
    "amqp://user:{}@a:5672,b:5672/vhost",
    "mongodb+srv://user:{}@host/db",
    "cannot connect to ftp://user:{}@host: refused",
    "proxies={{'http': 'http://user:{}@proxy:3128'}}",
]
PARAMETERS = [
    "jdbc:postgresql://host/db?user=u&password={}&ssl=true",
    "jdbc:postgresql://host/db?sslpassword={}",
    "jdbc:mysql://host/db?user=u&password={}",
    "jdbc:sqlserver://host;databaseName=d;user=u;password={};encrypt=true",
    "host=h dbname=d password={} user=u",
    "https://host/path?api_key={}&x=1",
    "https://host/path?access_token={}#top",
    "https://account.blob.core.windows.net/c?sv=2020&signature={}",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core.windows.net",
    "Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey={}",
    "aws_secret_access_key = {}",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "sent with Bearer {}",
    "Cookie: session={}; other=1",
    "X-Api-Key: {}",
    "connect(password={}, host='h')",
    "url=jdbc:postgresql://host/db?user=u&password={}",
    "'url': 'jdbc:postgresql://host/db?password={}'",
    '{{"options": {{"password": "{}"}}}}',
]
QUOTED = [
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";',
    "host=h password='{}' user=u",
    "connect(password='{}', host='h')",
    '{{"password": "{}", "host": "h"}}',
    "{{'sasl.password': '{}', 'group.id': 'g'}}",
    "{{'Authorization': '{}'}}",
    'token = "{}"',
]


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_settings_with_telling_names_are_hidden_in_every_spelling(key):
    for spelled in (key, key.upper(), key.replace("-", "_"), key.replace(".", "-"), key.replace("_", ".")):
        assert is_secret(spelled), spelled
        assert redacted_settings({spelled: "Zq12345678"}) == {spelled: HIDDEN}


@pytest.mark.parametrize("key", HARMLESS_KEYS)
def test_other_settings_are_shown(key):
    assert redacted_settings({key: "value"}) == {key: "value"}


@given(secret=quoted_secrets | secrets, name=st.sampled_from(SECRET_KEYS))
def test_secrets_in_settings_that_are_maps_are_hidden(secret, name):
    config = Configuration()
    ExecutionConfig(config).set_global_job_parameters({"first": "harmless", name: secret, "last": "harmless"})
    shown = redacted_settings(config.to_dict())["pipeline.global-job-parameters"]
    assert "Zq" not in shown and secret[-6:] not in shown
    assert HIDDEN in shown and "first:harmless" in shown


@pytest.mark.parametrize("form", URLS)
@given(secret=url_secrets)
def test_passwords_within_urls_are_hidden(form, secret):
    shown = redacted_text(form.format(secret))
    assert secret not in shown and HIDDEN in shown and "host" in form.format("").replace("proxy", "host")
    assert redacted_text(shown) == shown


@pytest.mark.parametrize("form", PARAMETERS)
@given(secret=secrets)
def test_parameters_with_telling_names_are_hidden(form, secret):
    shown = redacted_text(form.format(secret))
    assert secret not in shown and HIDDEN in shown
    assert redacted_text(shown) == shown


@pytest.mark.parametrize("form", QUOTED)
@given(secret=quoted_secrets)
def test_quoted_values_are_hidden_whole(form, secret):
    assert secret not in redacted_text(form.format(secret))


@given(st.sampled_from(SECRET_KEYS), secrets)
def test_secret_settings_are_hidden_in_texts_that_quote_them(key, secret):
    for text in (f"{key}={secret}", json.dumps({key: secret}), repr({key: secret}), f"got '{key} = {secret}'"):
        assert secret not in redacted_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/path",
        "hdfs://user@namenode:8020/path",
        "nobody answers at localhost:8081; is the job manager running?",
        "http://localhost:8081/jobs?mode=cancel",
        "operator 'hourly-totals': element {'id': 7} has no event time",
        "unexpected token: }",
        "if password == other:",
        "s3://bucket/a@b:c/d",
        "09:15:00 INFO penstock - job 1 is FINISHED",
        'File "/a/b.py", line 3, in <module>',
    ],
)
def test_what_is_no_secret_stays_as_it_is(text):
    assert redacted_text(text) == text


@given(st.text(max_size=200))
def test_any_text_can_be_shown_and_shown_again(text):
    once = redacted_text(text)
    assert redacted_text(once) == once


def test_long_texts_take_no_time_to_speak_of():
    parts = ("a", "password", "password=", "password='", "//", "//a:", "http://", "x-", "x:", '"\\', "a.", "a=", "'a':")
    for part in (*parts, "bearer ", " ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN "):
        redacted_text(part * (200_000 // len(part)))  # The test's time limit is what fails.


def test_private_keys_are_hidden():
    key = "-----BEGIN RSA PRIVATE KEY-----\nZqMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
    assert "ZqMII" not in redacted_text(f"cannot read {key} now") and redacted_text(f"{key} now").endswith(" now")
    assert "ZqMII" not in redacted_text(key[:60])


@given(secrets)
def test_documents_of_the_rest_api_hide_secrets(secret):
    told = {
        "sasl.jaas.config": f'required password="{secret}";',
        "fs.azure.account.key": secret,
        "penstock.working-dir": f"ftp://me:{secret}@host/x",
        "pipeline.name": "shown",
    }
    shown = json.dumps(all_settings(Configuration.from_dict(told)))
    assert secret not in shown and "shown" in shown
    assert secret not in failure_cause(ValueError(f"no connection to redis://:{secret}@host"))["stack-trace"]


@given(secrets)
def test_logs_hide_secrets_also_in_stacks(secret):
    try:
        raise ValueError(f"no connection to redis://:{secret}@host")
    except ValueError as error:
        record = logging.LogRecord("x", logging.INFO, "x", 1, "url %s", (f"http://u:{secret}@h",), None)
        record.exc_info = (ValueError, error, error.__traceback__)
    assert secret not in RedactingFormatter("%(message)s").format(record)


@dataclass
class Described:
    url: str
    properties: Mapping[str, str]
    password: str | None
    unseen: str = field(default="unseen", repr=False)

    __repr__ = redacted_repr


@given(secrets)
def test_representations_hide_secrets(secret):
    shown = repr(Described(f"http://u:{secret}@h", {"sasl.password": secret, "group.id": "g"}, secret))
    assert secret not in shown and "'group.id': 'g'" in shown and "unseen" not in shown
    options = JdbcConnectionOptions(f"jdbc:postgresql://h/d?password={secret}", user_name="u", password=secret)
    sink = JdbcSink("insert into t values (?)", Types.ROW([Types.STRING()]), options)
    assert secret not in repr(options) + repr(sink) and "user_name='u'" in repr(options)


def test_configuration_does_not_show_secrets():
    config = Configuration.from_dict({"sasl.password": "Zq12345678", "pipeline.name": "shown"})
    assert "Zq" not in repr(config) + str(config) and "shown" in repr(config) and "shown" in str(config)
    assert config.to_dict()["sasl.password"] == "Zq12345678"


_MAY_HOLD_SECRETS = {
    "url", "db_url", "uri", "address", "properties", "settings", "headers", "password", "configuration",
}  # fmt: skip


def _dataclasses() -> Iterator[type]:
    for package in (penstock.datastream.connectors, penstock.jobmaster, penstock.rest, penstock.datastream.formats):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            module = importlib.import_module(found.name)
            yield from (
                each
                for each in vars(module).values()
                if isinstance(each, type) and dataclasses.is_dataclass(each) and each.__module__ == module.__name__
            )


def test_every_class_that_may_hold_secrets_hides_them():
    """By the names of fields: one that is called so and holds text is shown without secrets, or not at all."""
    shown = {
        f"{each.__qualname__}.{part.name}"
        for each in _dataclasses()
        for part in dataclasses.fields(each)
        if part.repr and part.name in _MAY_HOLD_SECRETS and re.search(r"\bstr\b|bytes", str(part.type))
        if each.__repr__ is not redacted_repr
    }
    assert shown - _HARMLESS == set()


_HARMLESS = {
    "KafkaRecord.headers",  # A record is data.
    "KafkaConsumerRecord.headers",
    "Lease.address",  # Host and port of a job manager
}
