"""
Kerberos at an upstream proxy (``Negotiate``, RFC 4559), with the ticket of whoever runs this process.

This calls the GSS-API of the system's Kerberos, which finds ticket and realm as ``kinit`` and ``klist`` do
(``KRB5CCNAME``, ``KRB5_CONFIG``). Packages that wrap it have to be compiled against its headers, or fall back to NTLM.
Here Kerberos is the only mechanism that is offered, and no ticket is ever passed on to the proxy (delegation).
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any, Final

from cffi import FFI  # type: ignore[import-untyped, unused-ignore]

from ironcurtain.secrets.redaction import Secret
from ironcurtain.text.display import one_line

LIBRARY: Final = "libgssapi_krb5.so.2"
"""The library of MIT Kerberos."""

REASON_LIMIT: Final = 300
"""Maximum length in characters of what the library says of an error, which a realm can choose."""

_NO_CREDENTIAL, _EXPIRED = 7, 11
_ROUTINE_ERROR: Final = 16
"""The position of the error in a status (RFC 2744, section 3.9.1)."""

_KERBEROS: Final = bytes.fromhex("2a864886f712010202")  # 1.2.840.113554.1.2.2
_SPNEGO: Final = bytes.fromhex("2b0601050502")  # 1.3.6.1.5.5.2
_HOST_SERVICE: Final = bytes.fromhex("2a864886f71201020104")  # GSS_C_NT_HOSTBASED_SERVICE, 1.2.840.113554.1.2.1.4

ffi: Any = FFI()
ffi.cdef((Path(__file__).parent / "data" / "gssapi.h").read_text())


class NegotiationFailed(Exception):
    """
    There is no token, or the other side's is not valid.

    :param message: says what to do, if that is known.
    :ivar lasting: whether trying again is in vain until somebody changes something.
    """

    def __init__(self, message: str, *, lasting: bool) -> None:
        super().__init__(message)
        self.lasting = lasting


class Negotiation:
    """
    The authentication of one connection. Its methods may be called in any thread, one at a time.

    :param host: the proxy's name; the ticket is for its service ``HTTP``.
    :raises NegotiationFailed: Kerberos is not installed.
    """

    def __init__(self, host: str) -> None:
        self._library = _load()
        self._host, self._kept = host, list[Any]()
        self._kerberos, self._spnego = self._oid(_KERBEROS), self._oid(_SPNEGO)
        self._name = _owned("gss_name_t*", self._library.gss_release_name)
        self._credential = _owned("gss_cred_id_t*", self._library.gss_release_cred)
        self._context = _owned("gss_ctx_id_t*", self._library.gss_delete_sec_context, ffi.NULL)

    def begin(self) -> Secret:
        """
        Get a ticket for the proxy. This asks the realm's server (KDC) where there is none yet, and waits for it.

        :returns: the value of ``Proxy-Authorization``, for one connection.
        :raises NegotiationFailed: there is no ticket.
        """
        spnego, kerberos = (ffi.new("gss_OID_set_desc*", (1, one)) for one in (self._spnego, self._kerberos))
        self._call(
            "gss_acquire_cred", ffi.NULL, 0, spnego, self._library.GSS_C_INITIATE, self._credential, ffi.NULL, ffi.NULL
        )
        self._call("gss_set_neg_mechs", self._credential[0], kerberos)
        service = self._buffer(f"HTTP@{self._host}".encode("ascii"))
        self._call("gss_import_name", service, self._oid(_HOST_SERVICE), self._name)
        token, _ = self._step(b"")
        return Secret(f"Negotiate {base64.b64encode(token).decode('ascii')}", "Kerberos ticket")

    def confirm(self, token: str) -> None:
        """
        Verify that the proxy has the key of the service that the ticket is for.

        :param token: the proxy's, as it stands after ``Negotiate`` in its answer.
        :raises NegotiationFailed: it has not, or wants more than one exchange.
        """
        try:
            said = base64.b64decode(token, validate=True)
        except ValueError:
            said = b""
        try:
            proved = bool(said) and self._step(said)[1]
        except NegotiationFailed:
            proved = False
        if not proved:
            raise NegotiationFailed("it does not prove that the Kerberos ticket was meant for it", lasting=True)

    def _step(self, token: bytes) -> tuple[bytes, bool]:
        """:returns: what to send, and whether nothing is missing now."""
        library, output = self._library, ffi.new("gss_buffer_desc*")
        try:
            major = self._call(
                "gss_init_sec_context", self._credential[0], self._context, self._name[0], self._spnego,
                library.GSS_C_MUTUAL_FLAG, 0, ffi.NULL, self._buffer(token), ffi.NULL, output, ffi.NULL, ffi.NULL,
            )  # fmt: skip
            sent = bytes(ffi.buffer(output.value, output.length)) if output.length else b""
        finally:
            library.gss_release_buffer(_minor(), output)
        return sent, major == library.GSS_S_COMPLETE

    def _call(self, name: str, *arguments: Any) -> int:
        minor = _minor()
        major = int(getattr(self._library, name)(minor, *arguments))
        error = major >> _ROUTINE_ERROR
        if not error:
            return major
        if error & 0xFF in (_NO_CREDENTIAL, _EXPIRED):
            state = "has expired" if error & 0xFF == _EXPIRED else "is missing"
            raise NegotiationFailed(f"the Kerberos ticket {state}: run kinit", lasting=True)
        raise NegotiationFailed(f"Kerberos gives no ticket for it: {self._reason(minor[0])}", lasting=False)

    def _reason(self, minor: int) -> str:
        """:returns: what the library says of a status of Kerberos."""
        text = ffi.new("gss_buffer_desc*")
        self._library.gss_display_status(
            _minor(), minor, self._library.GSS_C_MECH_CODE, self._kerberos, ffi.new("OM_uint32*"), text
        )
        said = bytes(ffi.buffer(text.value, text.length)) if text.length else b"no reason given"
        self._library.gss_release_buffer(_minor(), text)
        return one_line(said.decode("utf-8", "replace"), REASON_LIMIT)

    def _oid(self, value: bytes) -> Any:
        elements = self._keep(ffi.new("char[]", value))
        return self._keep(ffi.new("gss_OID_desc*", (len(value), elements)))

    def _buffer(self, value: bytes) -> Any:
        elements = self._keep(ffi.new("char[]", value))
        return self._keep(ffi.new("gss_buffer_desc*", (len(value), elements)))

    def _keep(self, made: Any) -> Any:
        """The library reads what C structures point to, which cffi does not keep alive."""
        self._kept.append(made)
        return made


@cache
def _load() -> Any:
    """:returns: the library: once, since cffi keeps what it knows of each one that is opened."""
    try:
        return ffi.dlopen(LIBRARY)
    except OSError:
        message = f"Kerberos is not installed: {LIBRARY} is missing (Debian and Ubuntu: apt install libgssapi-krb5-2)"
        raise NegotiationFailed(message, lasting=True) from None


def _minor() -> Any:
    return ffi.new("OM_uint32*")


def _owned(kind: str, release: Any, *more: Any) -> Any:
    """:returns: a pointer to nothing yet; what the library will put there is released with it."""
    return ffi.gc(ffi.new(kind), lambda pointer: release(_minor(), pointer, *more))
