"""The sandbox's network: the public Internet by HTTP(S), and nothing of this machine or its neighbours."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagger_kernel.engines.local.policy import DENIED, Policy, RefusedError, check
from dagger_kernel.engines.local.proxy import Proxy, destination
from dagger_kernel.settings import Settings

REFUSED = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.1.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
    "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::a00:1",
    "64:ff9b::7f00:1", "2002:7f00:1::", "2002:c0a8:101::1", "fec0::1", "168.63.129.16", "192.0.0.192",
    # IPv4 inside IPv6 by SIIT and ISATAP, and what IANA's registries hold apart.
    "::ffff:0:169.254.169.254", "::ffff:0:808:808", "2606:4700::5efe:a9fe:a9fe", "2606:4700::200:5efe:a9fe:a9fe",
    "2606:4700::300:5efe:10.0.0.1", "2002:101:101::5efe:a00:1", "fe80::5efe:808:808", "64:ff9b:1::a00:1", "100::1", "100:0:0:1::1", "2001::1", "2001:2::1",
    "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", "3fff:fff::1", "5f00::1", "4000::1", "::ffff:168.63.129.16",
]  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_of_this_machine_and_its_neighbours_are_refused(address):
    with pytest.raises(RefusedError):
        check("name", address)


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "2002:101:101::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1",
     "2606:4700::200:5efe:101:101", "2001:200::1", "3ffe::1"],
)  # fmt: skip
def test_public_addresses_are_not(address):
    check("name", address)


@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_judged_like_itself(address):
    denied = any(address in network for network in DENIED if network.version == 4)
    forms = [
        str(address),
        f"::ffff:{address}",
        str(ipaddress.IPv6Address((0x64FF9B << 96) | int(address))),
    ]
    for form in forms:
        try:
            check("name", form)
        except RefusedError:
            assert denied
        else:
            assert not denied


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "0x7f.1", "2130706433", "127.1", "[::1]", "LOCALHOST."]
)
async def test_every_spelling_of_this_machine_is_refused(host):
    with pytest.raises((RefusedError, OSError)):
        await Policy().connect(host, 80)


async def test_other_ports_are_refused():
    with pytest.raises(RefusedError, match="port 22"):
        await Policy().connect("example.org", 22)


async def test_only_listed_domains_when_there_is_a_list():
    policy = Policy.of(Settings.load(network_allow="example.org .example.net"))
    for host in ("example.com", "notexample.org", "example.org.evil.com"):
        with pytest.raises(RefusedError, match="DAGGER_KERNEL_NETWORK_ALLOW"):
            await policy.connect(host, 443)


async def test_a_name_is_resolved_once_and_that_address_is_used(monkeypatch):
    """DNS rebinding: the second answer would be this machine."""
    answers = [["127.0.0.1"], ["1.1.1.1"]]
    asked, connected = [], []

    async def resolve(name, port):
        asked.append(name)
        return answers[-1] if len(asked) == 1 else answers[0]

    async def connect(address, port):
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(Policy, "_resolve", staticmethod(resolve))
    monkeypatch.setattr(asyncio, "open_connection", connect)
    with pytest.raises(ConnectionRefusedError):
        await Policy().connect("rebinding.example", 80)
    assert (asked, connected) == (["rebinding.example"], ["1.1.1.1"])


async def test_one_private_address_among_several_refuses_the_name(monkeypatch):
    async def resolve(name, port):
        return ["1.1.1.1", "10.0.0.1"]

    monkeypatch.setattr(Policy, "_resolve", staticmethod(resolve))
    with pytest.raises(RefusedError):
        await Policy().connect("mixed.example", 80)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "metadata.internal", "::1"])
async def test_an_upstream_proxy_is_not_asked_for_private_names(name):
    with pytest.raises(RefusedError):
        await Policy(upstream=("127.0.0.1", 9)).connect(name, 80)


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("CONNECT", "a.example:443", ("a.example", 443, "")),
        ("CONNECT", "[2606::1]:443", ("2606::1", 443, "")),
        ("GET", "http://a.example/x?y=1", ("a.example", 80, "/x?y=1")),
        ("POST", "http://a.example:8080", ("a.example", 8080, "/")),
        ("GET", "http://user:pass@xn--bcher-kva.example./x", ("xn--bcher-kva.example", 80, "/x")),
        ("GET", "http://0x1.0x1.1/", ("1.1.0.1", 80, "/")),
    ],
)
def test_proxy_requests_are_understood(method, target, expected):
    assert destination(method, target) == expected


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/relative"),
        ("GET", "ftp://a/"),
        ("GET", "file:///etc/passwd"),
        ("CONNECT", "a"),
        ("CONNECT", ":1"),
        ("CONNECT", "[2606::1%x\\@y]:443"),
        ("CONNECT", "[v1.a:b]:443"),
        ("CONNECT", "[2606::1%\xe9]:443"),
        ("GET", "http://b\xfccher.example/"),
    ],
)
def test_other_requests_are_refused(method, target):
    with pytest.raises((ValueError, RefusedError)):
        destination(method, target)


@pytest.fixture
async def server():
    """A web server on this machine that answers each request with its head."""

    async def echo(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + head)
            writer.write_eof()
            await writer.drain()
        except EOFError:
            pass  # it connected, and that was all
        finally:
            writer.close()

    made = await asyncio.start_server(echo, "127.0.0.1", 0)
    yield made.sockets[0].getsockname()[1]
    made.close()
    await made.wait_closed()


async def ask(policy, request):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    proxy = Proxy(policy)
    await proxy.start(listener)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    proxy.close()
    await asyncio.sleep(0)
    return answer, proxy.hosts


async def test_a_trusted_index_is_reached_wherever_it_is(server):
    policy = Policy(trusted=frozenset([("127.0.0.1", server)]))
    request = f"GET http://127.0.0.1:{server}/simple/ HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\n\r\n"
    answer, hosts = await ask(policy, request.encode())
    assert b"GET /simple/ HTTP/1.1" in answer
    assert b"Proxy-Connection" not in answer
    assert hosts == {f"127.0.0.1:{server}": "allowed"}


async def test_a_tunnel_carries_bytes_both_ways(server):
    policy = Policy(trusted=frozenset([("127.0.0.1", server)]))
    request = f"CONNECT 127.0.0.1:{server} HTTP/1.1\r\n\r\nGET /inside HTTP/1.1\r\n\r\n"
    answer, _ = await ask(policy, request.encode())
    assert answer.startswith(b"HTTP/1.1 200 Connection established")
    assert b"GET /inside" in answer


async def test_this_machine_is_refused_with_a_reason(server):
    answer, hosts = await ask(Policy(), f"GET http://127.0.0.1:{server}/ HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"network policy" in answer
    assert "refused" in hosts[f"127.0.0.1:{server}"]


@pytest.mark.parametrize(
    "request_text",
    [
        b"\x16\x03\x01 not http\r\n\r\n",
        b"GET /x HTTP/1.1\r\n\r\n",
        b"CONNECT [2606::1%\xe9]:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a]b:443 HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_no_proxy_request_is_answered(request_text):
    answer, hosts = await ask(Policy(), request_text)
    assert answer.startswith(b"HTTP/1.1 400")
    assert hosts == {}


SOURCE = """
import socket, urllib.request, urllib.error
def reach(family, address):
    try:
        socket.create_connection(address, timeout=5).close()
        return 'REACHED'
    except OSError as error:
        return type(error).__name__
print(reach(socket.AF_INET, ('127.0.0.1', {port})))
try:
    print('REACHED', urllib.request.urlopen('http://127.0.0.1:{port}/', timeout=5).status)
except (urllib.error.URLError, OSError) as error:
    print('refused')
try:
    with socket.create_connection(('127.0.0.1', 3128), timeout=5) as proxy:
        proxy.sendall(b'GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\n\\r\\n')
        print('proxy', proxy.makefile().readline().split()[1])
except OSError:
    print('no proxy')
"""


@pytest.mark.parametrize("network", ["proxy", "none", "host"])
async def test_a_cell_reaches_this_machine_only_with_the_host_network(
    fresh_data_dir, server, network
):
    from dagger_kernel.sandbox import SandboxSession, run_source
    from tests.sandbox.conftest import Listener

    settings = Settings.load(data_dir=str(fresh_data_dir), network=network)
    session = await SandboxSession.open(settings)
    listener = Listener()
    try:
        done = await run_source(session, SOURCE.format(port=server), listener)
    finally:
        await session.close()
    if network == "host":
        assert "REACHED" in listener.text
    else:
        assert "REACHED" not in listener.text
    if network == "proxy":
        assert "proxy 403" in listener.text
        assert "was not reached" in listener.text
        assert done.result.usage["hosts"]


def test_hosts_that_the_base_came_from_are_trusted():
    sources = ["https://mirror.internal:8443", "http://files.internal"]
    policy = Policy.of(Settings.load(), sources)
    assert {("mirror.internal", 8443), ("files.internal", 80)} <= policy.trusted


def test_a_trusted_address_is_known_in_every_spelling():
    policy = Policy.of(Settings.load(), ["http://[FD00:0:0::1]:3141", "http://127.1"])
    assert {("fd00::1", 3141), ("127.0.0.1", 80)} <= policy.trusted
