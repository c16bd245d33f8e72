"""The table ``[network]`` of ``config.toml``: how connections leave this machine."""

from __future__ import annotations

from typing import Literal

from ironcurtain.home.sections import SecretSource, Section


class Network(Section, frozen=True):
    """
    :param proxy: URL of the proxy for all connections, without a password; ``none``: no proxy, whatever the environment
        says; empty: what ``HTTPS_PROXY`` and ``HTTP_PROXY`` say.
    :param proxy_password: the source of the password for the user in ``proxy``.
    :param proxy_auth: ``basic``: the user in ``proxy``, if it has one; ``negotiate``: the Kerberos ticket of whoever
        runs IronCurtain.
    :param proxy_ca_file: PEM certificates to trust for an ``https://`` proxy besides the system's.
    :param undecrypted: hosts, or ``*.host`` for all names below, whose connections are passed on encrypted: policy
        decides on the connection only.
    :param no_proxy: hosts to which connections are made directly, instead of those in ``NO_PROXY``.
    """

    proxy: str = ""
    proxy_password: SecretSource = SecretSource()
    proxy_auth: Literal["basic", "negotiate"] = "basic"
    proxy_ca_file: str = ""
    no_proxy: tuple[str, ...] = ()
    undecrypted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.undecrypted:
            from ironcurtain.http.host_patterns import HostPatterns

            HostPatterns(self.undecrypted)
        if self.proxy_auth == "negotiate" and self.proxy in ("", "none"):
            raise ValueError(
                'proxy_auth = "negotiate" needs proxy, as in proxy = "http://proxy.example:3128": '
                "tickets go to no proxy that only the environment names"
            )
        if not (self.proxy or self.no_proxy or self.proxy_password.has_source):
            return
        from ironcurtain.http.proxies import check_entry, read_proxy  # a shell that starts does not need it

        user = ""
        if self.proxy not in ("", "none"):
            proxy = read_proxy(self.proxy, "proxy")
            user = proxy.user
            if proxy.password is not None:
                raise ValueError(
                    "proxy has a password: leave it out, and give its source, as in "
                    'proxy_password = { command = "pass show proxy" }, { env = "PROXY_PASSWORD" } or { file = "~/pw" }'
                )
        if user and self.proxy_auth == "negotiate":
            raise ValueError(
                'proxy has a user, and proxy_auth = "negotiate" sends a Kerberos ticket: leave one of them out'
            )
        if self.proxy_password.has_source and not user:
            raise ValueError("proxy_password needs a user in proxy, as in http://me@proxy.example:3128")
        for entry in self.no_proxy:
            check_entry(entry)
