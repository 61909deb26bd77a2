"""No secret is shown, wherever it stands."""

from __future__ import annotations

import json
import logging
import string
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration
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
from penstock.rest.job_documents import all_settings, failure_cause

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
        "File \"/a/b.py\", line 3, in <module>",
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
    sink = JdbcSink("insert into t values (?)", Types.ROW([Types.STRING()]), options)  # type: ignore[arg-type]
    assert secret not in repr(options) + repr(sink) and "user_name='u'" in repr(options)
