"""``ironcurtain mitm-proxy``."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.output import as_json, home, print_lines
from ironcurtain.cli.paths import UserPath
from ironcurtain.home.user_paths import absolute_path

if TYPE_CHECKING:
    from ironcurtain.accounts.source import TokenSource
    from ironcurtain.home.network_section import Network
    from ironcurtain.home.registry_sections import Registries
    from ironcurtain.home.sections import Provider
    from ironcurtain.http.upstream_proxies import UpstreamProxies
    from ironcurtain.mitm_proxy.authority import Authority
    from ironcurtain.mitm_proxy.proxy import MitmProxy
    from ironcurtain.mitm_proxy.recording import ModelTraffic
    from ironcurtain.network.responder import Responder
    from ironcurtain.registries.opening import OpenRegistries

USUAL = "anthropic"
"""The default provider."""


@click.command()
@click.option("--socket", type=UserPath(), required=True, help="Accept agents on this UNIX socket.")
@click.option("--providers", type=UserPath(), help="The providers (default: config.toml in the home).")
@click.option("--session-dir", type=UserPath(), help="Directory for the audit log.")
@as_json
def mitm_proxy(socket: Path, providers: Path | None, session_dir: Path | None, json_output: bool) -> None:
    """
    Forward an agent's requests to its model provider, adding the real key.

    Prints the agent's fake key for each provider, and the certificate to trust. It runs until Ctrl-C or SIGTERM. For
    an agent that needs a proxy on a TCP port, run:

    \b
      socat TCP-LISTEN:18080,bind=127.0.0.1,fork,reuseaddr,nodelay \\
            UNIX-CONNECT:SOCKET
      HTTPS_PROXY=http://127.0.0.1:18080 ...
    """
    from ironcurtain.cli.run import run
    from ironcurtain.process.identity import hide_memory

    hide_memory()
    where, session_id = home(), str(uuid.uuid4())
    directory = absolute_path(session_dir) if session_dir is not None else where.session(session_id).directory
    source = absolute_path(providers) if providers is not None else where.config
    serving = _Serving(
        session_id,
        absolute_path(socket),
        directory,
        where.authority,
        where.records,
        str(source),
        *_read(source, providers),
    )
    run(lambda reactor: serving.run(reactor, json_output))


@dataclass(frozen=True)
class _Serving:
    session_id: str
    socket: Path
    directory: Path
    authority: Path
    records: Path
    source: str
    tables: Mapping[str, Provider]
    network: Network
    registries: Registries

    async def run(self, reactor: Any, json_output: bool) -> None:
        """Serve until cancelled, or until agents can no longer connect."""
        from twisted.internet.defer import Deferred
        from twisted.internet.threads import deferToThreadPool
        from twisted.python.failure import Failure

        from ironcurtain.audit.log import AuditLog
        from ironcurtain.audit.signing import SigningKey
        from ironcurtain.errors import Unavailable
        from ironcurtain.home.layout import private_directory
        from ironcurtain.http.upstream_proxies import UpstreamProxies
        from ironcurtain.mitm_proxy.authority import Authority
        from ironcurtain.secrets.redaction import Redactor

        down: Deferred[None] = Deferred()
        redactor, authority = Redactor(), Authority.load_or_make(self.authority, time.time)
        audit = AuditLog(
            private_directory(self.directory) / "audit.jsonl",
            self.session_id,
            redactor,
            reactor,
            time.time,
            lambda work: deferToThreadPool(reactor, reactor.getThreadPool(), work),
            SigningKey.load_or_make(self.records),
        )
        try:
            proxies = UpstreamProxies(reactor, self.network, os.environ)
            registries = self._registries(reactor, proxies, audit, redactor)
            proxy = self._proxy(
                reactor,
                proxies,
                registries.responders,
                authority,
                audit,
                redactor,
                lambda why: down.errback(Failure(Unavailable(why))),
            )
            try:
                await registries.start()
                await proxy.start()
                await proxy.listen(self.socket)
                self._tell(proxy, authority, json_output)
                await down
            finally:
                await proxy.stop()
                await registries.stop()
        finally:
            await audit.close()

    def _registries(self, reactor: Any, proxies: UpstreamProxies, audit: Any, redactor: Any) -> OpenRegistries:
        from datetime import UTC, datetime

        from ironcurtain.network.dialling import Dialer
        from ironcurtain.process.configured_secret import configured_secret
        from ironcurtain.registries.opening import OpenRegistries, RegistrySurroundings

        around = RegistrySurroundings(
            reactor,
            Dialer(reactor, reactor.nameResolver, proxies),
            audit,
            redactor,
            lambda where, key: configured_secret(key, where, os.environ, reactor),
            lambda: datetime.now(UTC),
            lambda _: None,
        )
        return OpenRegistries(self.registries, around)

    def _proxy(
        self,
        reactor: Any,
        proxies: UpstreamProxies,
        responders: Mapping[tuple[str, int], Responder],
        authority: Authority,
        audit: Any,
        redactor: Any,
        down: Callable[[str], None],
    ) -> MitmProxy:
        from ironcurtain.accounts.source import api_key
        from ironcurtain.mitm_proxy.proxy import MitmProxy, MitmSurroundings
        from ironcurtain.providers.keys import real_key
        from ironcurtain.providers.rules import provider_rules

        async def account(name: str) -> TokenSource:
            return api_key(await real_key(name, self.tables[name].key, os.environ, reactor))

        return MitmProxy(
            session_id=self.session_id,
            rules=provider_rules(self.tables, self.tables, source=self.source),
            account=account,
            authority=authority,
            audit=audit,
            redactor=redactor,
            surroundings=MitmSurroundings(
                reactor,
                reactor.nameResolver,
                os.urandom,
                lambda: uuid.uuid4().hex,
                proxies,
            ),
            responders=responders,
            events=_heard,
            down=down,
        )

    def _tell(self, proxy: MitmProxy, authority: Authority, json_output: bool) -> None:
        certificate, audit = str(authority.certificate_path), str(self.directory / "audit.jsonl")
        keys = {name: fake.secret.reveal() for name, fake in proxy.fakes.items()}
        if json_output:
            facts = {"socket": str(self.socket), "certificate": certificate, "keys": keys, "audit": audit}
            click.echo(json.dumps(facts))
            return
        for name, key in keys.items():
            click.echo(f"{_variable(name)}={key}")
        for variable in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"):
            click.echo(f"{variable}={certificate}")
        click.echo(
            f"The keys are fake, for agents that connect to {self.socket}: set each in the variable that the agent "
            f"looks for it. {audit} records what they ask. Ctrl-C ends it.",
            err=True,
        )


def _heard(event: ModelTraffic) -> None:
    from ironcurtain.mitm_proxy.recording import ProviderNotice

    if isinstance(event, ProviderNotice):
        print_lines(event.text, err=True)


def _variable(provider: str) -> str:
    """
    :returns: the variable from which agents usually read a provider's key. The setting ``key.env`` concerns IronCurtain
        only.
    """
    from ironcurtain.providers.keys import DEFAULT_VARIABLES

    made = "".join(char if char.isalnum() else "_" for char in provider.upper())
    return DEFAULT_VARIABLES.get(provider) or f"{made}_API_KEY"


def _read(source: Path, named: Path | None) -> tuple[Mapping[str, Provider], Network, Registries]:
    """
    :param named: the file that the user named, if any; it must exist.
    :raises ConfigurationError: it cannot be read, or has no provider.
    """
    from ironcurtain.configuration import read_settings
    from ironcurtain.errors import ConfigurationError
    from ironcurtain.home.sections import Provider

    settings = read_settings(source, {}).settings
    tables = settings.providers
    if named is not None and not tables:
        raise ConfigurationError(str(source), f"has no provider: add a table [providers.{USUAL}]")
    return tables or {USUAL: Provider()}, settings.network, settings.registries
