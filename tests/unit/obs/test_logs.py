from __future__ import annotations

import io
import json
import logging
import re
import threading
from collections.abc import Iterator

import pytest

from fastapi_core.obs import logs


@pytest.fixture
def sink() -> Iterator[logs.Sink]:
    original, logs.SINK = logs.SINK, logs.Sink()
    yield logs.SINK
    logs.SINK.stop()
    logs.SINK = original


def test_text_lines(sink: logs.Sink) -> None:
    out = io.StringIO()
    sink.configure(stream=out)
    logs.get("x").info('Say "hi"', count=3, name="a b", ok=True)
    assert re.fullmatch(
        r'I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "Say \\"hi\\"" count=3 name="a b" ok=true\n',
        out.getvalue(),
    )


def test_errors_carry_their_traceback_below_the_line(sink: logs.Sink) -> None:
    out = io.StringIO()
    sink.configure(stream=out)
    try:
        raise ValueError("broken\nin two")
    except ValueError as error:
        logs.get("x").error("It failed", error)
    first, *rest = out.getvalue().splitlines()
    assert first.endswith('"It failed" err="broken\\nin two"')
    assert rest[0] == "Traceback (most recent call last):"


def test_json_lines(sink: logs.Sink) -> None:
    out = io.StringIO()
    sink.configure(format="json", stream=out)
    logs.get("part").warning("Careful", path="/x")
    line = json.loads(out.getvalue())
    assert (line["logger"], line["msg"], line["path"], line["severity"]) == ("part", "Careful", "/x", "warning")
    assert line["caller"].startswith("test_logs.py:")


def test_verbosity(sink: logs.Sink) -> None:
    out = io.StringIO()
    sink.configure(stream=out, verbosity=3)
    log = logs.get("x")
    log.debug("no", level=4)
    log.debug("yes", level=3)
    assert log.v(3)
    assert not log.v(4)
    assert '"yes"' in out.getvalue()
    assert '"no"' not in out.getvalue()


class Stalled(io.StringIO):
    """A pipe nobody reads until `open` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()

    def write(self, text: str) -> int:
        self.open.wait(10)
        return super().write(text)


def test_a_stalled_reader_stops_neither_the_loop_nor_health_for_long(sink: logs.Sink) -> None:
    out = Stalled()
    sink.configure(stream=out)
    sink.start()
    log = logs.get("x")
    for _ in range(logs.QUEUE_LIMIT + 10):
        log.info("line")
    assert sink.dropped >= 9
    sink.check()
    with pytest.raises(RuntimeError, match="log"):
        sink.check(limit=-1.0)
    out.open.set()
    sink.stop()
    assert out.getvalue().count("\n") >= logs.QUEUE_LIMIT
    sink.check(limit=-1.0)


def test_lines_of_the_standard_library_arrive_too(sink: logs.Sink) -> None:
    out = io.StringIO()
    sink.configure(stream=out)
    root = logging.getLogger()
    handler = logs.capture()
    try:
        logging.getLogger("asyncio").error("Task was %s", "destroyed")
        logging.getLogger("asyncio").debug("never")
    finally:
        root.removeHandler(handler)
    assert '"Task was destroyed" logger="asyncio"' in out.getvalue()
    assert "never" not in out.getvalue()
