"""
Who stands between the agent and the provider in ``mitm.py``, each with the same job: one method and path are allowed,
the key is checked and replaced, the provider's certificate is verified, and no answer waits until it is whole.

nginx does no more than that. Ours and mitmproxy also look for tools that the provider would run itself, count tokens,
keep the real key out of answers, and write a chained record of each request and of each answer. The relay does nothing
but TLS, the same as ours on both sides.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ironcurtain.mitm_proxy.authority import new_authority, new_key, new_leaf
from tests.ports import free_port

HOST = "localhost"
REAL_KEY = "sk-ant-api03-REALREALREALREALREALREALREALREAL"
FAKE_KEY = "sk-ant-api03-FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE"
PATIENCE = 60.0
"""Seconds that a program may take to start."""

NGINX = """
daemon off; master_process off; pid {top}/nginx.pid; error_log {top}/nginx.log;
events {{ worker_connections 2048; }}
http {{
  access_log off; keepalive_requests 1000000;
  client_body_temp_path {top}; proxy_temp_path {top}; fastcgi_temp_path {top}; uwsgi_temp_path {top};
  scgi_temp_path {top};
  upstream provider {{ server 127.0.0.1:{provider}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port} ssl; server_name {host};
    ssl_certificate {top}/host.pem; ssl_certificate_key {top}/host.key;
    location = /v1/messages {{
      if ($request_method != POST) {{ return 403; }}
      if ($http_x_api_key != {fake}) {{ return 403; }}
      proxy_pass https://provider; proxy_http_version 1.1; proxy_buffering off; proxy_request_buffering off;
      proxy_set_header Connection ""; proxy_set_header Host {host}; proxy_set_header x-api-key {real};
      proxy_ssl_verify on; proxy_ssl_trusted_certificate {top}/ca.pem; proxy_ssl_name {host};
      proxy_ssl_server_name on;
    }}
    location / {{ return 403; }}
  }}
}}
"""

ADDON = """
import hashlib, json, time
from mitmproxy import http

log, before = open("{log}", "ab", buffering=0), ""

def record(**members):
    global before
    line = json.dumps({{"at": time.time(), "before": before, **members}})
    before = hashlib.sha256(line.encode()).hexdigest()
    log.write((line + "\\n").encode())

def refused(request):
    if (request.method, request.path) != ("POST", "/v1/messages") or request.headers.get("x-api-key") != "{fake}":
        return "rule"
    body = json.loads(request.raw_content)
    if body.get("mcp_servers") or any("input_schema" not in tool for tool in body.get("tools", ())):
        return "provider-acts"
    return ""

def request(flow):
    why = refused(flow.request)
    record(kind="request", id=flow.id, path=flow.request.path, decision="deny" if why else "allow", rule=why)
    if why:
        flow.response = http.Response.make(403)
    else:
        flow.request.headers["x-api-key"] = "{real}"

def responseheaders(flow):
    usage = flow.metadata["usage"] = {{}}

    def passed(piece):
        for line in piece.splitlines():
            if b'"usage"' in line:
                answer = json.loads(line.removeprefix(b"data: "))
                usage.update(answer.get("message", answer)["usage"])
        return piece.replace(b"{real}", b"*")

    flow.response.stream = passed

def response(flow):
    record(kind="response", id=flow.id, status=flow.response.status_code, usage=flow.metadata.get("usage"))
"""


@dataclass(frozen=True)
class Peer:
    """
    :param pid: its process; 0 for none.
    :param place: its port of 127.0.0.1, or the path of its socket.
    :param tunnel: the port to which it is asked for a tunnel; 0 for one that makes no tunnels.
    :param ca_file: what its clients have to trust.
    :param key: the key that its clients send.
    """

    name: str
    pid: int
    place: str
    tunnel: int
    ca_file: Path
    key: str


@contextlib.contextmanager
def peers(mitmproxy: str) -> Iterator[tuple[Path, list[Peer]]]:
    """
    Run the provider and everybody who is there.

    :param mitmproxy: its ``mitmdump``; empty if there is none.
    :returns: the program that makes the load, and the peers.
    """
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as running:
        top = Path(directory)
        load = _compiled(top)
        _certificates(top)
        command = [load, "provider", top / "host.pem", top / "host.key", REAL_KEY]
        process = running.enter_context(_running(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert process.stdout is not None
        provider = int(process.stdout.readline())
        found = [
            Peer("direct", 0, str(provider), 0, top / "ca.pem", REAL_KEY),
            _nginx(running, top, provider),
            _mitmproxy(running, top, provider, mitmproxy) if mitmproxy else None,
            _python(running, top, provider, "ours", "mitm_peers.py"),
            _python(running, top, provider, "relay", "mitm_relay.py"),
        ]
        yield load, [peer for peer in found if peer is not None]


def _compiled(top: Path) -> Path:
    source, program = Path(__file__).with_name("mitm_load.c"), top / "load"
    options = ["-O2", "-D_GNU_SOURCE", "-o", str(program), str(source), "-lssl", "-lcrypto", "-lpthread"]
    compiler = shutil.which("cc")
    if compiler is None or subprocess.run([compiler, *options]).returncode:
        raise SystemExit(
            "mitm_load.c cannot be compiled: a C compiler and the headers of OpenSSL (libssl-dev) are needed"
        )
    return program


def _certificates(top: Path) -> None:
    now, key = time.time(), new_key()
    authority = new_authority(now)
    (top / "ca.pem").write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    (top / "host.pem").write_bytes(new_leaf(authority, key, HOST, now).certificate.public_bytes(Encoding.PEM))
    (top / "host.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@contextlib.contextmanager
def _running(*command: Any, **how: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(list(map(str, command)), **how) as process:
        try:
            yield process
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()


def _wait(name: str, *, path: Path | None = None, port: int = 0) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if path is None:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            path.stat()
            return
        time.sleep(0.05)
    raise SystemExit(f"{name} did not start")


def _nginx(running: contextlib.ExitStack, top: Path, provider: int) -> Peer | None:
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        print("nginx is not installed: it is left out")
        return None
    port, own = free_port(), top / "nginx"
    own.mkdir()
    for name in ("ca.pem", "host.pem", "host.key"):
        shutil.copy(top / name, own)
    settings = NGINX.format(top=own, provider=provider, port=port, host=HOST, fake=FAKE_KEY, real=REAL_KEY)
    (own / "nginx.conf").write_text(settings)
    process = running.enter_context(_running(program, "-c", own / "nginx.conf", "-e", own / "nginx.log"))
    _wait("nginx", port=port)
    return Peer("nginx", process.pid, str(port), 0, top / "ca.pem", FAKE_KEY)


def _mitmproxy(running: contextlib.ExitStack, top: Path, provider: int, program: str) -> Peer:
    port, own = free_port(), top / "mitmproxy"
    own.mkdir()
    (own / "addon.py").write_text(ADDON.format(fake=FAKE_KEY, real=REAL_KEY, log=own / "log.jsonl"))
    options = {"confdir": own, "ssl_verify_upstream_trusted_ca": top / "ca.pem"}
    settings = [part for name, value in options.items() for part in ("--set", f"{name}={value}")]
    command = [program, "-q", "--mode", f"regular@127.0.0.1:{port}", "-s", own / "addon.py", *settings]
    process = running.enter_context(_running(*command))
    _wait("mitmproxy", port=port)
    return Peer("mitmproxy", process.pid, str(port), provider, own / "mitmproxy-ca-cert.pem", FAKE_KEY)


def _python(running: contextlib.ExitStack, top: Path, provider: int, name: str, program: str) -> Peer:
    own = top / name
    own.mkdir(mode=0o700)
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    command = [sys.executable, Path(__file__).with_name(program), own, top / "ca.pem", provider]
    process = running.enter_context(_running(*command, env=environ, stdout=subprocess.PIPE, text=True))
    assert process.stdout is not None
    key = process.stdout.readline().strip()
    if not key:
        raise SystemExit(f"{name} did not start")
    return Peer(name, process.pid, str(own / "mitm.sock"), 443, own / "ca" / "ca.pem", key)


def serve(top: Path, ca_file: str, provider: int) -> None:
    """Our proxy, as sessions have it, with an audit log on disk. It prints the fake key once it listens."""
    from twisted.internet.asyncioreactor import install

    install()
    from twisted.internet import reactor as the_reactor
    from twisted.internet.defer import Deferred
    from twisted.internet.threads import deferToThread

    from ironcurtain.accounts.source import api_key
    from ironcurtain.audit.log import AuditLog
    from ironcurtain.home.network_section import Network
    from ironcurtain.home.sections import Provider
    from ironcurtain.http.upstream_proxies import UpstreamProxies
    from ironcurtain.mitm_proxy.authority import Authority
    from ironcurtain.mitm_proxy.limits import MitmLimits
    from ironcurtain.mitm_proxy.proxy import MitmProxy, MitmSurroundings
    from ironcurtain.providers.rules import provider_rules
    from ironcurtain.secrets.redaction import Redactor, Secret

    reactor: Any = the_reactor

    redactor = Redactor()
    tables = {"anthropic": Provider(host=HOST, base_url=f"https://{HOST}:{provider}", ca_file=ca_file)}
    proxy = MitmProxy(
        session_id="bench",
        rules=provider_rules(tables, ["anthropic"]),
        account=lambda name: api_key(Secret(REAL_KEY)),
        authority=Authority.load_or_make(top / "ca", time.time),
        audit=AuditLog(top / "audit.jsonl", "bench", redactor, reactor, time.time, deferToThread),
        redactor=redactor,
        surroundings=MitmSurroundings(
            reactor,
            reactor.nameResolver,
            os.urandom,
            lambda: os.urandom(8).hex(),
            UpstreamProxies(reactor, Network(), {}),
        ),
        events=lambda event: None,
        down=lambda why: None,
        limits=MitmLimits(connections=1024),
    )

    async def start() -> None:
        await proxy.start()
        await proxy.listen(top / "mitm.sock")
        print(proxy.fakes["anthropic"].secret.reveal(), flush=True)

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(start()).addErrback(lambda f: f.printTraceback()))
    reactor.run()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
