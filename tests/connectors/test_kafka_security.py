"""Settings of Kafka's clients, and brokers that want a password."""

from __future__ import annotations

import uuid

import pytest
from server_sink_job import ServerSinkJob

from penstock.common.exceptions import ConnectorError
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream.connectors import DeliveryGuarantee
from penstock.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from penstock.datastream.connectors.kafka.protocol import ScramExchange
from penstock.datastream.connectors.kafka.settings import client_settings, producer_settings
from penstock.datastream.connectors.kafka.transactions import KafkaTransactions


@pytest.mark.parametrize(
    ("java", "native"),
    [
        ({"acks": "all", "linger.ms": "5"}, {"acks": "all", "linger.ms": "5"}),
        ({"key.serializer": "x", "max.poll.records": "5", "client.id.prefix": "p"}, {}),
        ({"max.request.size": "5", "fetch.max.wait.ms": "6"}, {"message.max.bytes": "5", "fetch.wait.max.ms": "6"}),
        ({"buffer.memory": "2048"}, {"queue.buffering.max.kbytes": "2"}),
        (
            {"sasl.jaas.config": "org.x.PlainLoginModule required username=\"u 1\" password='p=2';"},
            {"sasl.username": "u 1", "sasl.password": "p=2"},
        ),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "ca.pem"}, {"ssl.ca.location": "ca.pem"}),
    ],
)
def test_settings_of_java_are_translated(java, native):
    assert client_settings(java) == native


def test_a_producer_does_not_get_the_settings_of_a_consumer():
    shared = {"bootstrap.servers": "localhost:9092", "group.id": "g", "auto.offset.reset": "earliest", "acks": "1"}
    assert producer_settings(shared) == {"bootstrap.servers": "localhost:9092", "acks": "1"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ssl.truststore.location": "x.jks"}, r"set ssl.ca.location to a file of certificates"),
        ({"sasl.jaas.config": "com.x.Login required;"}, r"sasl.jaas.config has no username"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
            r"cannot be committed with sasl.mechanism GSSAPI",
        ),
        ({"security.protocol": "TLS"}, r"security.protocol must be PLAINTEXT, SSL, .* got 'TLS'"),
    ],
)
def test_what_cannot_be_translated_is_refused_when_the_sink_is_built(settings, message):
    with pytest.raises(ValueError, match=message):
        exactly_once("host:1", "t", settings)


def test_scram_is_as_in_the_standard():
    exchange = ScramExchange("SCRAM-SHA-256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")  # RFC 7677
    assert exchange.first_message() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = exchange.final_message(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    exchange.check_server(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(ConnectorError, match="could not prove that it knows the password"):
        exchange.check_server(b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def exactly_once(servers, topic, settings, prefix="p"):
    of_records = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema = of_records.set_value_serialization_schema(SimpleStringSchema()).build()
    builder = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(schema)
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(prefix)
    for name, value in settings.items():
        builder.set_property(name, value)
    return builder.build()


def login(kafka, mechanism, password=None):
    return {"sasl.mechanism": mechanism, "sasl.username": kafka.user, "sasl.password": password or kafka.password}


@pytest.mark.parametrize(
    ("mechanism", "has_tls"), [("PLAIN", False), ("PLAIN", True), ("SCRAM-SHA-256", False), ("SCRAM-SHA-512", True)]
)
def test_transactions_are_committed_and_aborted_with_a_password(secured_kafka, tmp_path, mechanism, has_tls):
    topic, prefix = secured_kafka.topics.new(), f"secured-{uuid.uuid4().hex[:8]}"
    settings = {"security.protocol": "SASL_SSL" if has_tls else "SASL_PLAINTEXT", **login(secured_kafka, mechanism)}
    if has_tls:
        settings["ssl.ca.location"] = str(secured_kafka.certificate)
    servers = secured_kafka.tls_servers if has_tls else secured_kafka.sasl_servers
    job = ServerSinkJob(exactly_once(servers, topic, settings, prefix), tmp_path).write(2).checkpoint().write(1)
    job.crash().write(2).end()
    assert secured_kafka.topics.values(topic) == ["0", "1", "2", "3"]
    assert secured_kafka.topics.open_transactions(prefix) == []


def test_wrong_password_is_reported(secured_kafka):
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        settings = {"security.protocol": "SASL_PLAINTEXT", **login(secured_kafka, mechanism, "wrong")}
        settings["bootstrap.servers"] = secured_kafka.sasl_servers
        with pytest.raises(ConnectorError, match=r"Authentication failed.*\(error 58\)"):
            KafkaTransactions(settings, "test").open_ids(bool)


def test_unknown_certificate_is_refused(secured_kafka):
    settings = {"security.protocol": "SASL_SSL", **login(secured_kafka, "PLAIN")}
    settings["bootstrap.servers"] = secured_kafka.tls_servers
    with pytest.raises(ConnectorError, match="CERTIFICATE_VERIFY_FAILED"):
        KafkaTransactions(settings, "test", timeout_s=0.1).open_ids(bool)
