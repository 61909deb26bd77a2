from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock.common
from penstock.common import ByteArraySchema, Encoder, Row, SimpleStringSchema, Types, TypeSerializer
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    RowDataBulkWriterFactory,
    RowFieldExtractorSchema,
    SerializationSchema,
    deserializer_of_many,
    serializer_of_many,
)
from penstock.common.serializer import VoidNamespaceSerializer


@given(st.text(), st.sampled_from(["UTF-8", "UTF-16", "utf_32"]))
def test_strings_survive_their_bytes(text, charset):
    schema = SimpleStringSchema(charset)
    assert schema.deserialize(schema.serialize(text)) == text


@given(st.binary())
def test_bytes_stay_as_they_are(message):
    schema = ByteArraySchema()
    assert schema.deserialize(schema.serialize(bytearray(message))) == message


def test_schemas_have_a_type_and_never_end_a_stream():
    assert SimpleStringSchema().get_produced_type() == Types.STRING()
    assert ByteArraySchema().get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())
    assert DeserializationSchema().get_produced_type() == Types.PICKLED_BYTE_ARRAY()
    assert not SimpleStringSchema().is_end_of_stream("x")


def test_bytes_that_are_no_text_are_replaced():
    assert SimpleStringSchema().deserialize(b"a\xff") == "a�"


def test_field_of_a_row_becomes_the_bytes():
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row(b"k", b"v")) == schema.serialize((b"k", b"v")) == b"v"
    assert schema.serialize(Row(b"k", None)) is None
    with pytest.raises(TypeError, match="field 1 takes bytes, got 'text'"):
        schema.serialize(Row(b"k", "text"))
    with pytest.raises(ValueError, match="has no field 1"):
        schema.serialize(Row(b"k"))
    with pytest.raises(ValueError, match="field_index cannot be negative, got -1"):
        RowFieldExtractorSchema(-1)


def test_wrong_values_are_explained():
    with pytest.raises(TypeError, match="SimpleStringSchema serializes strings, got 5"):
        SimpleStringSchema().serialize(5)
    with pytest.raises(TypeError, match="ByteArraySchema takes bytes, got 'x'"):
        ByteArraySchema().serialize("x")
    with pytest.raises(TypeError, match="takes fields of rows, got 5"):
        RowFieldExtractorSchema(0).serialize(5)
    with pytest.raises(ValueError, match="unknown character set 'klingon'"):
        SimpleStringSchema("klingon")


def test_string_encoder_writes_one_line_for_each_element_as_print_shows_it():
    stream = BytesIO()
    encoder = Encoder.simple_string_encoder("ISO-8859-1")
    for element in ("é", ("a", 1), Row("b", 2)):
        encoder.encode(element, stream)
    assert stream.getvalue() == "é\n(a,1)\n+I[b, 2]\n".encode("latin-1")


def test_bases_say_what_to_override():
    for call in (
        lambda: SerializationSchema().serialize(1),
        lambda: DeserializationSchema().deserialize(b""),
        lambda: Encoder().encode(1, BytesIO()),
        lambda: BulkWriter().add_element(1),
        lambda: BulkWriterFactory().create(BytesIO()),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"override|use the factories"):
            call()


def test_row_writer_factory_keeps_its_row_type():
    row_type = Types.ROW([Types.INT()])
    assert RowDataBulkWriterFactory(row_type).get_row_type() is row_type


class NumberSerializer(TypeSerializer[int]):
    def __init__(self, width: int) -> None:
        self.width = width

    def serialize(self, element: int, stream: BytesIO) -> None:
        stream.write(element.to_bytes(self.width, "big", signed=True))

    def deserialize(self, stream: BytesIO) -> int:
        return int.from_bytes(stream.read(self.width), "big", signed=True)


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_a_users_serializer_reads_what_it_wrote(numbers):
    stream, serializer = BytesIO(), NumberSerializer(4)
    for number in numbers:
        serializer.serialize(number, stream)
    stream.seek(0)
    assert [serializer.deserialize(stream) for _ in numbers] == numbers


def test_serializers_with_equal_attributes_are_equal():
    assert NumberSerializer(4) == NumberSerializer(4) != NumberSerializer(8)
    assert hash(NumberSerializer(4)) == hash(NumberSerializer(4)) and repr(NumberSerializer(4)) == "NumberSerializer()"
    stream = BytesIO()
    VoidNamespaceSerializer().serialize(b"", stream)
    assert VoidNamespaceSerializer().deserialize(stream) == b""


def test_unknown_names_of_the_package_are_attribute_errors():
    assert not hasattr(penstock.common, "NoSuchThing")


@pytest.mark.parametrize("charset", ["UTF-8", "utf8", "ISO-8859-1", "UTF-16"])
def test_many_texts_become_what_each_becomes(charset):
    schema = SimpleStringSchema(charset)
    texts = ["", "a", "\u00e9"]
    messages = [schema.serialize(text) for text in texts]
    assert serializer_of_many(schema)(texts) == messages
    assert deserializer_of_many(schema)(messages) == texts


@given(st.lists(st.binary(max_size=5)))
def test_many_messages_become_what_each_becomes(messages):
    schema = SimpleStringSchema()
    assert deserializer_of_many(schema)(messages) == [schema.deserialize(each) for each in messages]


@pytest.mark.parametrize("elements", [["a", 1], ["a", None], ["a", "\ud800"]])
def test_many_with_one_that_is_refused_are_refused(elements):
    with pytest.raises((TypeError, UnicodeEncodeError)):
        serializer_of_many(SimpleStringSchema())(elements)


class _Reversed(SimpleStringSchema):
    def serialize(self, element):
        return super().serialize(element)[::-1]

    def deserialize(self, message):
        return super().deserialize(message)[::-1]


@pytest.mark.parametrize("schema", [_Reversed(), ByteArraySchema()])
def test_schemas_with_code_of_their_own_are_asked_for_each(schema):
    assert serializer_of_many(schema) is None and deserializer_of_many(schema) is None
