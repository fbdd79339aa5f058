"""Spans and histograms of each request, for OpenTelemetry; loaded only where that is asked for."""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from aggregator import __version__
from aggregator.basics.json import JsonObject, as_object
from aggregator.errors import CallError
from aggregator.records import conventions as names
from aggregator.records.events import Hop, Operation

NAME = "mcp-tool-aggregator"
MAX_CONTEXT = 1024
"""Characters of what a client hands on of its trace."""
MAX_REQUEST = 100
"""Characters of the number that a client gives a request."""

_CONTEXT = TraceContextTextMapPropagator()
_KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT}


class Tracer:
    """Makes a span of each operation, and measures it.

    It is nobody's but ours: the SDK would otherwise make spans of each message, too.
    """

    def __init__(self, variables: Mapping[str, str], *, traces: bool, metrics: bool) -> None:
        resource = Resource.create(_resource(variables))
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        if traces:
            self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if metrics else []
        self._meters = MeterProvider(readers, resource, shutdown_on_exit=False)
        self._tracer = self._spans.get_tracer(NAME, __version__)
        meter = self._meters.get_meter(NAME, __version__)
        self._durations: Mapping[str, Histogram] = {
            kind: meter.create_histogram(
                name, "s", explicit_bucket_boundaries_advisory=names.BUCKETS
            )
            for kind, name in (("server", names.SERVER_DURATION), ("client", names.CLIENT_DURATION))
        }

    @contextmanager
    def following(self, operation: Operation) -> Generator[Hop, None, None]:
        """Make a span for the length of the block, with its place in the trace handed on."""
        if operation.kind == "server":
            operation = operation._replace(method=names.method_label(operation.method))
        attributes = _attributes(operation)
        before = _context(operation.params)
        kind = _KINDS[operation.kind]
        span = self._tracer.start_span(_title(operation), before, kind, attributes)
        hop = Hop(_handed_on(operation.params, span))
        began = time.perf_counter()
        error: BaseException | None = None
        try:
            yield hop
        except BaseException as problem:
            error = problem
            raise
        finally:
            outcome = _outcome(hop, error)
            if hop.target:
                operation = operation._replace(target=hop.target)
                attributes = _attributes(operation)
                span.update_name(_title(operation))
            span.set_attributes({**attributes, **outcome})
            if names.ERROR in outcome:
                span.set_status(Status(StatusCode.ERROR))
            span.end()
            measured = {key: attributes[key] for key in names.MEASURED if key in attributes}
            duration = time.perf_counter() - began
            self._durations[operation.kind].record(duration, {**measured, **outcome})

    def close(self) -> None:
        """Send what has not been sent yet."""
        self._spans.shutdown()
        self._meters.shutdown()


def _resource(variables: Mapping[str, str]) -> dict[str, str]:
    """Return how we introduce ourselves, unless somebody has chosen another name."""
    given = variables.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if variables.get("OTEL_SERVICE_NAME") or "service.name=" in given:
        return {"service.version": __version__}
    return {"service.name": NAME, "service.version": __version__}


def _title(operation: Operation) -> str:
    return f"{operation.method} {operation.target}".rstrip()


def _attributes(operation: Operation) -> dict[str, str]:
    found = {
        names.METHOD: operation.method,
        names.PROTOCOL: operation.protocol,
        names.REQUEST: operation.request[:MAX_REQUEST],
        names.TRANSPORT: names.TCP if operation.is_remote else names.PIPE,
        names.SERVER: operation.server,
    }
    if operation.method == "tools/call":
        found |= {names.TOOL: operation.target, names.OPERATION: names.EXECUTE_TOOL}
    elif operation.method == "prompts/get":
        found[names.PROMPT] = operation.target
    return {key: value for key, value in found.items() if value}


def _outcome(hop: Hop, error: BaseException | None) -> dict[str, str]:
    """Say what went wrong, if anything did, without the words in which it was told."""
    code = getattr(error, "code", None)
    if isinstance(error, CallError):
        return {names.ERROR: error.kind}
    if isinstance(code, int):
        told = names.code_label(code)
        return {names.ERROR: told, names.STATUS: told}
    if error is not None:
        return {names.ERROR: type(error).__qualname__}
    return {names.ERROR: names.TOOL_ERROR} if hop.has_failed else {}


def _context(params: JsonObject) -> Context:
    meta = as_object(params.get("_meta"))
    carried = {key: meta[key] for key in names.CONTEXT if _is_short(meta.get(key))}
    return _CONTEXT.extract(carried, Context())


def _is_short(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_CONTEXT


def _handed_on(params: JsonObject, span: Span) -> dict[str, Any]:
    """Return the params with the span as what comes next belongs to."""
    meta = as_object(params.get("_meta"))
    carried = {key: value for key, value in meta.items() if key not in names.CONTEXT}
    _CONTEXT.inject(carried, set_span_in_context(span, Context()))
    return {**params, "_meta": carried}
