"""Whether spans are wanted, and how they reach whoever wants them."""

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Protocol

import anyio
from anyio import to_thread

from aggregator.records.events import Tracer

logger = logging.getLogger(__name__)

LAST_SEND = 2.0
"""Seconds that the last spans may take to be sent when we end."""


class Telemetry(Tracer, Protocol):
    """A tracer that sends what it makes."""

    def close(self) -> None:
        """Send what has not been sent yet."""
        ...


def open_tracer(variables: Mapping[str, str]) -> Telemetry | None:
    """Return what makes spans, where the variables of OpenTelemetry ask for them."""
    traces, metrics = (_is_wanted(each, variables) for each in ("TRACES", "METRICS"))
    if not (traces or metrics) or variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if find_spec("opentelemetry.sdk") is None or find_spec("opentelemetry.exporter") is None:
        logger.info("no spans are made: the extra `mcp-tool-aggregator[otel]` is not installed")
        return None
    # It takes a third of a second, which only who asks for it waits.
    from aggregator.records.spans import Tracer  # noqa: PLC0415 - see above

    return Tracer(variables, traces=traces, metrics=metrics)


def _is_wanted(signal: str, variables: Mapping[str, str]) -> bool:
    """Whether spans, or measurements, have somewhere to go that we can send them to."""
    exporter = variables.get(f"OTEL_{signal}_EXPORTER")
    places = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    if "otlp" not in (exporter or "otlp").split(","):
        return False
    if exporter is None and not any(map(variables.get, places)):
        return False
    usual = variables.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    protocol = variables.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or usual
    if protocol != "http/protobuf":
        logger.warning("no %s are sent: of OTLP we speak http/protobuf only", signal.lower())
    return protocol == "http/protobuf"


async def keep_sending(tracer: Telemetry) -> None:
    """Let spans be sent in the background until cancelled; then send the last, within bounds."""
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(deadline=anyio.current_time() + LAST_SEND, shield=True):
            await to_thread.run_sync(tracer.close, abandon_on_cancel=True)
