"""An OTLP receiver: keeps the spans and the names of measurements that programs send it."""

import gzip
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.patience import PATIENCE


@dataclass(frozen=True)
class Received:
    """A span as it came."""

    service: str
    name: str
    kind: int
    trace: str
    span: str
    parent: str
    attributes: dict[str, str]
    failed: bool


@dataclass
class Collector:
    """What was received."""

    url: str = ""
    spans: list[Received] = field(default_factory=list[Received])
    measurements: set[str] = field(default_factory=set[str])
    bodies: list[bytes] = field(default_factory=list[bytes])
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, path: str, body: bytes) -> None:
        with self.changed:
            self.bodies.append(body)
            if path.endswith("/traces"):
                self.spans.extend(_spans(ExportTraceServiceRequest.FromString(body)))
            else:
                self.measurements |= _measurements(ExportMetricsServiceRequest.FromString(body))
            self.changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, PATIENCE)


def _spans(request: ExportTraceServiceRequest) -> Generator[Received]:
    for resource in request.resource_spans:
        own = {each.key: each.value.string_value for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    own.get("service.name", ""),
                    span.name,
                    span.kind,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    {each.key: each.value.string_value for each in span.attributes},
                    span.status.code == 2,
                )


def _measurements(request: ExportMetricsServiceRequest) -> set[str]:
    return {
        metric.name
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


@contextmanager
def collecting() -> Generator[Collector]:
    """Receive what is sent to an address of the loopback interface."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
