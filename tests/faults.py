"""What `faulty.py` can do wrong when its tool `fault` is called; see there."""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

Json = dict[str, Any]

TEXT = '{"content":[{"type":"text","text":"#"}]}'
DAMAGE = (
    b"", b"\n", b"\r", b"\0", b"\xff", b'"', b"\\", b"{", b"}", b"[", b"]",
    b"\\ud83d", b"9" * 5000, b"[" * 5000, b'"id":7,', b"\xef\xbb\xbf",
)  # fmt: skip
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class Wire:
    """Standard output, and the ways to answer on it."""

    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def answer(self, identifier: object, result: Json) -> None:
        self.send({"jsonrpc": "2.0", "id": identifier, "result": result})

    def text(self, identifier: object, text: str) -> None:
        self.answer(identifier, text_result(text))


def text_result(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}], "resultType": "complete"}


def raw_answer(identifier: object, result: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{json.dumps(identifier)},"result":{result}}}'.encode()


def raw(result: str) -> Callable[[Wire, object, int], None]:
    """A fault that is an answer with this very text as its result."""
    return lambda wire, identifier, _: wire.write(raw_answer(identifier, result) + b"\n")


def not_utf8(wire: Wire, identifier: object, _size: int) -> None:
    line = raw_answer(identifier, '{"content":[{"type":"text","text":"caf#"}]}')
    wire.write(line.replace(b"#", b"\xe9") + b"\n")


def noise(wire: Wire, identifier: object, size: int) -> None:
    wire.write(b"Loading model ... 50 %\n" * (size or 5))
    wire.text(identifier, "after the noise")


def deep(wire: Wire, identifier: object, size: int) -> None:
    depth = size or 100_000
    wire.write(raw_answer(identifier, '{"a":' + "[" * depth + "]" * depth + "}") + b"\n")


def filled(filler: bytes, result: str = TEXT) -> Callable[[Wire, object, int], None]:
    """A fault that is an answer of a given size, most of it the same over and over."""

    def fault(wire: Wire, identifier: object, size: int) -> None:
        frame = raw_answer(identifier, result)
        head, tail = frame.split(b"#")
        wire.write(head)
        left = size - len(frame) + 1
        block = filler * max(1, (1 << 18) // len(filler))
        while left > 0:
            wire.write(block[: left // len(filler) * len(filler) or left])
            left -= len(block)
        wire.write(tail + b"\n")

    return fault


def huge_keys(wire: Wire, identifier: object, size: int) -> None:
    members = (f'"{number:06x}":0,' for number in range(size // 11))
    wire.write(raw_answer(identifier, "{" + "".join(members) + '"":0}') + b"\n")


def huge_line_with_id_last(wire: Wire, identifier: object, size: int) -> None:
    wire.write(b'{"result":{"text":"' + b"x" * size + b'"},"jsonrpc":"2.0","id":')
    wire.write(json.dumps(identifier).encode() + b"}\n")


def trickle(wire: Wire, identifier: object, size: int) -> None:
    for byte in raw_answer(identifier, json.dumps(text_result("x" * size))) + b"\n":
        wire.write(bytes([byte]))


def partial(wire: Wire, identifier: object, _size: int) -> None:
    wire.write(raw_answer(identifier, '{"content":[]}')[:-8])
    os._exit(0)


def batch(wire: Wire, identifier: object, _size: int) -> None:
    result = text_result("in a batch")
    wire.send([CHANGED, {"jsonrpc": "2.0", "id": identifier, "result": result}])


def glued(wire: Wire, identifier: object, _size: int) -> None:
    result = raw_answer(identifier, json.dumps(text_result("glued")))
    wire.write(json.dumps(CHANGED).encode() + result + b"\n")


def byte_order_mark(wire: Wire, identifier: object, _size: int) -> None:
    result = raw_answer(identifier, json.dumps(text_result("marked")))
    wire.write(b"\xef\xbb\xbf" + result + b"\r\n\r\n")


def stop_reading(wire: Wire, identifier: object, _size: int) -> None:
    wire.text(identifier, "I am not listening any more")
    sleep_for_ever()


def close_stdin(wire: Wire, identifier: object, _size: int) -> None:
    os.close(0)
    wire.text(identifier, "I cannot hear you any more")
    sleep_for_ever()


def close_stdout(_wire: Wire, _identifier: object, _size: int) -> None:
    os.close(1)
    sleep_for_ever()


def storm(wire: Wire, identifier: object, size: int) -> None:
    wire.write((json.dumps(CHANGED).encode() + b"\n") * (size or 20_000))
    wire.text(identifier, "after the storm")


def mutations(wire: Wire, identifier: object, size: int) -> None:
    """Write damaged answers to calls nobody made, with a whole message now and then."""
    whole = raw_answer(987_654, TEXT) + b"\n"
    state = 1
    for number in range(size or 1000):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        start, length, pick = state >> 24 & 63, state >> 30 & 31, state >> 35 & 15
        wire.write(whole[:start] + DAMAGE[pick] + whole[start + length :])
        if number % 100 == 0:
            wire.send(CHANGED)
    wire.text(identifier, "after the damage")


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    "",
    "x" * 5000,
    [],
    {},
    [[]],
    [None],
    {"a": {}},
    0.5,
    "\u202e",
)
PLACES = (
    ("content",), ("content", 0), ("content", 0, "text"), ("content", 0, "type"), ("_meta",),
    ("structuredContent",), ("isError",), ("resultType",), ("requestState",), ("inputRequests",),
    ("content", 0, "uri"), ("content", 0, "resource"), (),
)  # fmt: skip


def odd(wire: Wire, identifier: object, size: int) -> None:
    """Answer with something odd in one place of a result; `size` says what and where."""
    place, value = PLACES[size % len(PLACES)], ODD[size // len(PLACES) % len(ODD)]
    result: Any = text_result("whole")
    holder: Any = {"result": result}
    key: Any = "result"
    for step in place:
        holder, key = holder[key], step
    holder[key] = value
    wire.answer(identifier, {"content": []} if not place else result)


def twice(wire: Wire, identifier: object, _size: int) -> None:
    wire.text(identifier, "first")
    wire.text(identifier, "second")


def stranger(wire: Wire, identifier: object, _size: int) -> None:
    wire.text(987_654, "for nobody")
    wire.text(identifier, "for you")


NOTICES = {
    "progress": "progressToken", "message": "data", "cancelled": "requestId",
    "resources/updated": "uri", "subscriptions/acknowledged": "_meta",
    "elicitation/complete": "elicitationId",
}  # fmt: skip


def odd_notices(wire: Wire, identifier: object, size: int) -> None:
    """Tell everything there is to tell with something odd in it, and answer odd numbers."""
    for _ in range(size or 1):
        for method, key in NOTICES.items():
            for value in ODD:
                params = {key: value}
                wire.send({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params})
        wire.text("9" * 5000, "for a number of 5,000 digits")
        wire.write(b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"result":{}}\n')
    wire.text(identifier, "after what was odd")


def stderr_flood(wire: Wire, identifier: object, size: int) -> None:
    sys.stderr.buffer.write(b"\x1b[31mwarning\x1b[0m: something odd happened\n" * (size or 10_000))
    sys.stderr.buffer.flush()
    wire.text(identifier, "after the flood")


def secret(wire: Wire, identifier: object, _size: int) -> None:
    told = f"the key is {os.environ.get('API_KEY')}\n".encode()
    sys.stderr.buffer.write(told)
    sys.stderr.buffer.flush()
    wire.write(told)
    wire.text(identifier, "told")


def asking(wire: Wire, identifier: object, size: int) -> None:
    """Ask so many questions without ever reading an answer."""
    for number in range(size or 100_000):
        wire.send({"jsonrpc": "2.0", "id": f"q{number}", "method": "ping"})
    wire.text(identifier, "after the questions")


def reporting(wire: Wire, identifier: object, size: int) -> None:
    """Report progress over and over."""
    method = "notifications/progress"
    for number in range(size or 100_000):
        params = {"progressToken": identifier, "progress": number}
        wire.send({"jsonrpc": "2.0", "method": method, "params": params})
    wire.text(identifier, "after the reports")


def chatting(wire: Wire, identifier: object, size: int) -> None:
    """Log over and over."""
    params = {"level": "error", "data": "chat " * 20}
    for _ in range(size or 100_000):
        wire.send({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
    wire.text(identifier, "after the chat")


def redos(wire: Wire, identifier: object, _size: int) -> None:
    """Answer with what the pattern of the tool's own schema takes for ever to refuse."""
    result = text_result("a" * 30 + "!") | {"structuredContent": {"text": "a" * 30 + "!"}}
    wire.answer(identifier, result)


def confess(wire: Wire, identifier: object, _size: int) -> None:
    """Say everywhere but in the answer what the process was given."""
    wire.write(confession())
    wire.text(identifier, "confessed")


def confession() -> bytes:
    given = [*os.environ.values(), *sys.argv]
    told = "".join(f"given: {value}\n" for value in given if "canary" in value).encode()
    sys.stderr.buffer.write(told)
    sys.stderr.buffer.flush()
    return told


def die(_wire: Wire, _identifier: object, _size: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end(_wire: Wire, _identifier: object, size: int) -> None:
    sys.stderr.write("cannot go on\n")
    sys.stderr.flush()
    os._exit(size or 3)


def fork(wire: Wire, identifier: object, _size: int) -> None:
    wire.text(identifier, str(leave_behind(daemon=False)))


def fork_and_die(_wire: Wire, _identifier: object, _size: int) -> None:
    leave_behind(daemon=False)
    os.kill(os.getpid(), signal.SIGKILL)


def daemon(wire: Wire, identifier: object, _size: int) -> None:
    wire.text(identifier, str(leave_behind(daemon=True)))


def leave_behind(*, daemon: bool) -> int:
    """Start a process that ignores SIGTERM and holds our pipes; return its pid."""
    heard, told = os.pipe()
    if (pid := os.fork()) == 0:
        if daemon:
            os.setsid()
            if os.fork():
                os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(told, str(os.getpid()).encode())
        sleep_for_ever()
    if daemon:
        os.waitpid(pid, 0)
    return int(os.read(heard, 16))


def sleep_for_ever() -> NoReturn:
    while True:
        signal.pause()


FAULTS: dict[str, Callable[[Wire, Any, int], None]] = {
    "ok": lambda wire, identifier, _: wire.text(identifier, "no fault"),
    "hang": lambda _wire, _identifier, _size: None,
    "die": die,
    "exit": end,
    "nonutf8": not_utf8,
    "noise": noise,
    "deep": deep,
    "surrogate": raw(r'{"content":[{"type":"text","text":"cut \ud83d"}]}'),
    "bigint": raw('{"content":[],"structuredContent":{"n":' + "9" * 100_000 + "}}"),
    "null": raw("null"),
    "nan": raw('{"content":[],"structuredContent":{"n":NaN,"m":-Infinity}}'),
    "text_result": raw('"done"'),
    "wrong_shape": raw('{"content":7}'),
    "garbage": raw('{"content": nope}'),
    "hugeline": filled(b"x"),
    "hugebytes": filled(b"\xff"),
    "hugewide": filled(b"x", TEXT.replace("#", "\U0001f600#")),
    "hugeemoji": filled("\U0001f600".encode()),
    "hugeescapes": filled(rb"\ud83d"),
    "hugeobjects": filled(b"{},", '{"a":[#{}]}'),
    "hugenumbers": filled(b"1234,", '{"a":[#0]}'),
    "hugerows": filled(b'{"a":1},', '{"a":[#{}]}'),
    "hugekeys": huge_keys,
    "hugestrings": filled(b'"ab",', '{"a":[#0]}'),
    "hugeintegers": filled(b"1" * 40 + b",", '{"a":[#0]}'),
    "hugenests": filled(b"[[[[]]]],", '{"a":[#0]}'),
    "hugetable": filled(b"1,2,[3],{4},"),
    "hugetail": huge_line_with_id_last,
    "trickle": trickle,
    "partial": partial,
    "batch": batch,
    "glued": glued,
    "bom": byte_order_mark,
    "stop_reading": stop_reading,
    "close_stdin": close_stdin,
    "close_stdout": close_stdout,
    "storm": storm,
    "mutations": mutations,
    "odd": odd,
    "twice": twice,
    "stranger": stranger,
    "odd_notices": odd_notices,
    "stderr": stderr_flood,
    "secret": secret,
    "asking": asking,
    "reporting": reporting,
    "chatting": chatting,
    "confess": confess,
    "redos": redos,
    "fork": fork,
    "fork_and_die": fork_and_die,
    "daemon": daemon,
}
