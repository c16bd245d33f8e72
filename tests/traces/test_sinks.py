from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.services.line_sinks import FileSink, JournalSink, OutputSink, SyslogSink
from ironcurtain.traces.context import SinkChoice
from ironcurtain.traces.sinks import make_sink


class SinkTests(SynchronousTestCase):
    def test_each_choice_has_its_sink(self) -> None:
        for choice, kind in (
            (SinkChoice("file", "/a"), FileSink),
            (SinkChoice("journald"), JournalSink),
            (SinkChoice("syslog"), SyslogSink),
            (SinkChoice("stdout"), OutputSink),
        ):
            self.assertIsInstance(make_sink(choice, print), kind)
