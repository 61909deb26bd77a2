"""A small server that speaks the bulk API of Elasticsearch and OpenSearch, and does as badly as a test tells it to."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class BulkServer:
    """Keeps documents by index and id.

    `statuses`: what the next requests are answered as a whole, without a look at them; 0 ends the connection, -1 takes
    the request and ends the connection then. `busy`: how often an action on a document is refused with 429.
    """

    def __init__(self):
        self.indices = {}
        self.requests = []
        self.headers = []
        self.statuses = []
        self.busy = {}
        self.made = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.headers.append((self.path, dict(self.headers)))
                status = server.statuses.pop(0) if server.statuses else 200
                if status == 0:
                    self.close_connection = True
                    return
                answer = server.bulk(body) if status in (200, -1) else {"error": "not now", "status": status}
                if status == -1:
                    self.close_connection = True
                    return
                self._answer(status, answer)

            def _answer(self, status, answer):
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("X-Elastic-Product", "Elasticsearch")
                self.send_header("Content-Type", self.headers.get("Accept", "application/json").split(",")[0])
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_PUT = do_POST

            def do_GET(self):
                """A document: /index/_doc/id"""
                index, _, key = self.path.strip("/").split("/")
                self._answer(200, {"_index": index, "_id": key, "_source": server.documents(index)[key]})

            def log_message(self, *arguments):
                """Tests are quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        self.host = f"127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def documents(self, index):
        return self.indices.get(index, {})

    def bulk(self, body):
        lines = [json.loads(line) for line in body.splitlines() if line]
        actions = []
        while lines:
            ((kind, meta),) = lines.pop(0).items()
            actions.append((kind, meta, None if kind == "delete" else lines.pop(0)))
        self.requests.append(actions)
        items = [{kind: self._do(kind, meta, source)} for kind, meta, source in actions]
        return {"took": 1, "errors": any("error" in item for each in items for item in each.values()), "items": items}

    def _do(self, kind, meta, source):
        key = meta.get("_id")
        answer = {"_index": meta["_index"], "_id": key}
        if self.busy.get(key, 0) > 0:
            self.busy[key] -= 1
            return {**answer, "status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue"}}
        documents = self.indices.setdefault(meta["_index"], {})
        if kind == "delete":
            return {**answer, "status": 200 if documents.pop(key, None) is not None else 404, "result": "deleted"}
        document = source["doc"] if kind == "update" else source
        if not isinstance(document.get("n", 0), int):
            return {**answer, "status": 400, "error": {"type": "mapper_parsing_exception", "reason": "n is no number"}}
        if kind == "create" and key in documents:
            return {**answer, "status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "there"}}
        if key is None:
            self.made += 1
            key = f"made-{self.made}"
        documents[key] = {**documents.get(key, {}), **document} if kind == "update" else document
        return {**answer, "_id": key, "status": 201, "result": "created"}
