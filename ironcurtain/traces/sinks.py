"""Where spans are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ironcurtain.services.line_sinks import FileSink, JournalSink, LineSink, OutputSink, SyslogSink
from ironcurtain.traces.context import SinkChoice
from ironcurtain.traces.span import SPAN_BEGINS


def make_sink(choice: SinkChoice, output: Callable[[bytes], None]) -> LineSink:
    """:param output: writes to our standard output."""
    match choice.kind:
        case "file":
            return FileSink(Path(choice.path), SPAN_BEGINS)
        case "journald":
            return JournalSink()
        case "syslog":
            return SyslogSink()
        case "stdout":
            return OutputSink(output)
