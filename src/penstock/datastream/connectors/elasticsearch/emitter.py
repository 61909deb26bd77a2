"""From elements to actions of a bulk request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.common.types import Row

__all__ = ["Action", "ElasticsearchEmitter"]

Action = Mapping[str, Any]
"""In the form of the client's bulk helpers: `_op_type` (index, create, update, delete), `_index`, `_id`, `_source`."""


class ElasticsearchEmitter:
    """Turns an element into actions. The ready-made emitters take dicts, and rows with field names.

    An emitter of your own overrides `emit`. After a failure, actions are repeated. With an `_id`, that changes nothing
    for `index`, `delete` and an `update` by a document; but `create` is refused, because the document is there already.

    `Elasticsearch7SinkBuilder` has an example.
    """

    def __init__(self, j_emitter: object = None) -> None:
        if j_emitter is not None:
            raise TypeError(
                f"ElasticsearchEmitter({j_emitter!r}): a Java emitter cannot run here; use static_index(...), "
                f"dynamic_index(...) or a subclass with emit(element)"
            )

    def emit(self, element: Any) -> Iterable[Action]:
        """The actions for an element, such as `{"_op_type": "delete", "_index": "users", "_id": "7"}`."""
        raise NotImplementedError(f"{type(self).__name__} must override emit(element)")

    @staticmethod
    def static_index(index: str, key_field: str | None = None, doc_type: str | None = None) -> ElasticsearchEmitter:
        """All documents go to one index.

        :param key_field: The field that is a document's id: a document with the same id is updated, or inserted if
            there is none. Without it every element is a new document.
        :param doc_type: Of Elasticsearch 6; without effect.
        """
        return _DocumentEmitter(_Constant(index), key_field)

    @staticmethod
    def dynamic_index(
        index_field: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """Like `static_index`, but a field of each document names its index."""
        return _DocumentEmitter(_Field(index_field, "index"), key_field)


@dataclass(frozen=True)
class _Constant:
    value: str

    def __call__(self, document: Mapping[str, Any]) -> str:
        return self.value


@dataclass(frozen=True)
class _Field:
    name: str
    meaning: str

    def __call__(self, document: Mapping[str, Any]) -> str:
        value = document.get(self.name)
        if value is None:
            raise ValueError(
                f"the element has no value in the field {self.name!r}, which is its {self.meaning}: {dict(document)!r}"
            )
        return str(value)


@dataclass(frozen=True)
class _DocumentEmitter(ElasticsearchEmitter):
    index: Callable[[Mapping[str, Any]], str]
    key_field: str | None

    def emit(self, element: Any) -> Iterable[Action]:
        document = _document_of(element)
        if self.key_field is None:
            return ({"_op_type": "index", "_index": self.index(document), "_source": document},)
        key = _Field(self.key_field, "id")(document)
        changes = {"doc": document, "doc_as_upsert": True}
        return ({"_op_type": "update", "_index": self.index(document), "_id": key, "_source": changes},)


def _document_of(element: Any) -> Mapping[str, Any]:
    if isinstance(element, Mapping):
        return element
    if isinstance(element, Row) and element._fields:
        document: dict[str, Any] = element.as_dict(True)
        return document
    raise TypeError(
        f"a document is a dict or a Row with field names, got {element!r}; map elements to dicts, or use an "
        f"emitter of your own with emit(element)"
    )
