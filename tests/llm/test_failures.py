from __future__ import annotations

from OpenSSL import SSL
from twisted.internet import error as net
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseFailed, ResponseNeverReceived

from ironcurtain.http.trust import InvalidCertificate
from ironcurtain.llm.failures import network_error
from ironcurtain.llm.model import ModelError

HOST = "api.example.com"


def words(error: Exception) -> str:
    told = network_error(error, HOST)
    assert isinstance(told, ModelError), told
    return str(told)


class WordsTests(SynchronousTestCase):
    """No words of Twisted, OpenSSL or treq reach a person."""

    def test_what_a_person_is_reported(self) -> None:
        broken_off = Exception("Chunked decoder in 'CHUNK_LENGTH' state, still expecting more data")
        for error, wanted in (
            (ResponseFailed([Failure(net.ConnectionDone()), Failure(broken_off)]), "before its answer was whole"),
            (
                ResponseNeverReceived([Failure(net.ConnectionLost("the other side was lost"))]),
                "before its answer was whole",
            ),
            (net.ConnectionRefusedError(111, "errno text"), "nothing listens there"),
            (net.NoRouteError(113, "errno text"), "there is no route to it"),
            (net.TCPTimedOutError(110, "errno text"), "no answer in time"),
            (net.ConnectError(None, "something odd"), f"{HOST} cannot be reached: check the network and base_url"),
            (net.DNSLookupError("no results"), "cannot be found"),
            (ResponseFailed([Failure(SSL.Error([("SSL routines", "", "wrong version number")]))]), "TLS"),
            (InvalidCertificate("it has expired"), "it has expired"),
            (ResponseFailed([Failure(ValueError("unexpected header line b'x'"))]), "could not be understood"),
        ):
            told = words(error)
            self.assertIn(wanted, told, repr(error))
            self.assertIn(HOST, told)
            for foreign in ("decoder", "errno", "side was lost", "SSL routines", "odd", "no results", "b'", "\n"):
                self.assertNotIn(foreign, told, repr(error))
