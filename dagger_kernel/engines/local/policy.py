"""What a sandbox may reach through the proxy: public addresses, ports 80 and 443, listed names."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ...settings import Settings
from ..layout import first_of

PORTS = frozenset((80, 443))
DENIED = tuple(
    ipaddress.ip_network(text)
    for text in (
        # This host and network, private ranges, carrier-grade NAT, link-local (cloud metadata
        # services), Azure's host, documentation, benchmarking, multicast, reserved, tunnels.
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        # IPv6: all but 2000::/3, where IANA allocates; there, protocols' own (Teredo, ORCHID,
        # benchmarking) and documentation.
        "::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "3fff::/20",
    )
)  # fmt: skip
TRANSLATED = (ipaddress.IPv6Network("::ffff:0:0/96"), ipaddress.IPv6Network("64:ff9b::/96"))
"""IPv6 ranges that are nothing but IPv4 addresses, in the last 32 bits."""
SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
ISATAP, ISATAP_MASK = 0x0000_5EFE, 0xFCFF_FFFF
"""What stands before an IPv4 address in an interface's identifier; two flags in it may have any value."""
CONNECT_SECONDS = 30.0
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PRIVATE = (".localhost", ".local", ".internal", ".home.arpa")


class RefusedError(Exception):
    """The policy refuses a destination; the text says why."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may be reached.

    Attributes
    ----------
    allowed
        Domain names; a name allows its subdomains too. Empty: every public host.
    trusted
        Hosts and ports of the package index: allowed wherever they are.
    upstream
        Host and port of the administrator's own proxy, which then resolves and connects.
    """

    allowed: tuple[str, ...] = ()
    trusted: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    upstream: tuple[str, int] | None = None

    @classmethod
    def of(cls, settings: Settings, sources: Iterable[str] = ()) -> Policy:
        """Return the policy of the settings.

        Parameters
        ----------
        sources
            Where the base's packages came from: a mirror inside the administrator's network must serve
            cells as it served the base's build, which was trusted.
        """
        index = settings.index_url or first_of("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
        proxy = settings.proxy or first_of("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
        trusted = frozenset(found for url in (index, *sources) if (found := _endpoint(url)))
        names = tuple(name.lower().strip(".") for name in settings.network_allow.split())
        return cls(names, trusted, _endpoint(proxy))

    async def connect(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a destination, or to the upstream proxy for it.

        The address that was checked is the one connected to: a name that resolves differently a
        moment later changes nothing.

        Raises
        ------
        RefusedError
            The policy says no.
        OSError
            The network says no.
        """
        name = host_name(host)
        trusted = (name, port) in self.trusted
        if not trusted and port not in PORTS:
            raise RefusedError(f"port {port} is not open to sandboxes (80 and 443 are)")
        if (
            not trusted
            and self.allowed
            and not any(name == domain or name.endswith("." + domain) for domain in self.allowed)
        ):
            raise RefusedError(f"{name} is not in DAGGER_KERNEL_NETWORK_ALLOW")
        if self.upstream is not None:
            if not trusted:
                self._check_literal(name)
            return await _open(*self.upstream)
        addresses = await self._resolve(name, port)
        if not trusted:
            for address in addresses:
                check(name, address)
                if is_own(address):
                    raise RefusedError(f"{name} ({address}) is this machine")
        error: OSError = OSError(f"{name} has no address")
        for address in addresses:
            try:
                return await _open(address, port)
            except OSError as failure:
                error = failure
        raise error

    @staticmethod
    def _check_literal(name: str) -> None:
        try:
            ipaddress.ip_address(name)
        except ValueError:
            # A name without a dot is completed with a local domain: "metadata" in a cloud.
            if "." not in name or name.endswith(_PRIVATE):
                raise RefusedError(f"{name} is not a public host") from None
        else:
            check(name, name)

    @staticmethod
    async def _resolve(name: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise OSError(f"{name} cannot be resolved: {error}") from error
        return list(dict.fromkeys(str(item[4][0]) for item in found))


def host_name(text: str) -> str:
    """Return a host in the one form that is checked, recorded and sent on.

    Whatever else may stand there, another program could read it as another host. International names
    come as their ``xn--`` form, which is what clients send.

    Raises
    ------
    RefusedError
        It is neither a name nor an address.
    """
    name = text.lower().rstrip(".")
    if _NAME.fullmatch(name):
        with contextlib.suppress(OSError):
            # 2130706433, 0x7f.1 and 127.1 are addresses too, and 010.8.8.8 is read in two ways.
            return socket.inet_ntoa(socket.inet_aton(name))
        if not _NUMBER.fullmatch(name.rpartition(".")[2]):
            return name
    elif ":" in name and "%" not in name:
        with contextlib.suppress(ValueError):
            return str(ipaddress.IPv6Address(name.removeprefix("[").removesuffix("]")))
    raise RefusedError(f"{text[:80]!r} is no host name")


def check(name: str, address: str) -> None:
    """Refuse an address that is not public.

    Raises
    ------
    RefusedError
    """
    for candidate in _meanings(ipaddress.ip_address(address.partition("%")[0])):
        if any(candidate.version == net.version and candidate in net for net in DENIED):
            at = "" if name == address else f" ({address})"
            raise RefusedError(f"{name}{at} is not a public address")


def _meanings(address: _Address) -> list[_Address]:
    """Return an address, and the IPv4 address that it holds: a gateway may lead there."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    number = int(address)
    last = ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    if any(address in network for network in TRANSLATED):
        return [last]
    meanings: list[_Address] = [address]
    if address in SIX_TO_FOUR:
        meanings.append(ipaddress.IPv4Address(number >> 80 & 0xFFFF_FFFF))
    if number >> 32 & ISATAP_MASK == ISATAP:
        meanings.append(last)
    return meanings


def is_own(address: str) -> bool:
    """Whether an address belongs to this machine: a firewall does not stand between it and itself."""
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


async def _open(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(host, port)
    except TimeoutError:
        raise OSError(f"no answer within {CONNECT_SECONDS:.0f} s") from None


def _endpoint(url: str) -> tuple[str, int] | None:
    if not url:
        return None
    parts = urlsplit(url)
    if not parts.hostname:
        return None
    host = parts.hostname
    with contextlib.suppress(RefusedError):  # the next proxy may be fe80::1%eth0
        host = host_name(host)
    return host, parts.port or (443 if parts.scheme == "https" else 80)
