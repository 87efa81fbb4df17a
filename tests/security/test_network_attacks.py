"""Ways to this machine and its neighbours: sockets, and the proxy's own seams."""

from __future__ import annotations

import asyncio
import os
import socket
import threading

import pytest

from dagger_kernel import Sandbox
from dagger_kernel.engines.local.policy import Policy, RefusedError, is_own
from dagger_kernel.engines.local.proxy import MAX_CONNECTIONS, MAX_HOSTS, Proxy, Request

from .conftest import printed

REACH = """
import socket
def reach(family, address, kind=socket.SOCK_STREAM):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(3); s.connect(address); s.send(b'x')
        return 'REACHED'
    except OSError as error:
        return type(error).__name__
"""


@pytest.fixture
def listeners():
    """Services of this machine: on its loopback and under an abstract name."""
    tcp = socket.create_server(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    name = f"\0dagger-kernel-test-{os.getpid()}"
    abstract.bind(name)
    abstract.listen()
    yield tcp.getsockname()[1], name
    tcp.close()
    abstract.close()


@pytest.mark.parametrize("network", ["none", "proxy", "host"])
def test_services_of_this_machine(fresh_data_dir, listeners, network):
    port, name = listeners
    with Sandbox(data_dir=str(fresh_data_dir), network=network) as sandbox:
        found = printed(
            sandbox.run(
                f"{REACH}\nprint(reach(socket.AF_INET, ('127.0.0.1', {port})), reach(socket.AF_UNIX, {name!r}))"
            )
        ).split()
    assert found == (
        ["REACHED", "REACHED"] if network == "host" else ["ConnectionRefusedError"] * 2
    )


def test_there_is_no_other_way_out_than_the_proxy(attacker):
    code = (
        REACH
        + """
print(reach(socket.AF_INET, ('169.254.169.254', 80)), reach(socket.AF_INET, ('1.1.1.1', 53), socket.SOCK_DGRAM),
      reach(socket.AF_INET, ('8.8.8.8', 443)), reach(socket.AF_INET6, ('2606:4700::1111', 443)), reach(socket.AF_INET, ('10.0.0.1', 22)))
print([name for _, name in socket.if_nameindex() if not name.startswith(('tunl', 'sit', 'ip6', 'gre', 'erspan', 'ip_vti', 'teql'))])
try: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
except OSError as error: print(type(error).__name__)
try: socket.getaddrinfo('example.com', 80)
except OSError as error: print(type(error).__name__)
"""
    )
    first, interfaces, raw, names = printed(attacker.run(code)).splitlines()
    assert "REACHED" not in first
    assert interfaces == "['lo']"
    assert raw == "PermissionError"
    assert names == "gaierror"


FORMS = [
    "http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://2852039166/", "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/", "http://169.254.43518/", "http://127.0.0.1:80/", "http://localhost/", "http://localhost./",
    "http://[::1]/", "http://[::]/", "http://0/", "http://127.1/", "http://[0:0:0:0:0:ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/",
    "http://user:pass@127.0.0.1/", "http://1.1.1.1@127.0.0.1/", "http://127.0.0.1#@1.1.1.1/", "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1%2eexample.com@127.0.0.1/", "http://１２７.0.0.1/", "http://[fe80::1%25lo]/", "http://[::ffff:7f00:1]/",
    "http://127.0.0.1:0/", "http://2130706433/", "http://0177.0.0.1/", "http://[fd00:ec2::254]/", "http://100.100.100.200/",
]  # fmt: skip


def test_no_spelling_passes_the_proxy(attacker, subtests):
    """Sent by hand, so that no client library repairs them."""
    code = f"""
import socket
for target in {FORMS!r}:
    with socket.create_connection(('127.0.0.1', 3128), timeout=20) as proxy:
        proxy.sendall(f'GET {{target}} HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n'.encode('utf-8'))
        print(proxy.makefile('rb').readline().split()[1].decode())
for target in ('169.254.169.254:80', '[::1]:443', 'localhost:22', '127.0.0.1:443', '0x7f.1:443', 'example.com:22', 'example.com:25'):
    with socket.create_connection(('127.0.0.1', 3128), timeout=20) as proxy:
        proxy.sendall(f'CONNECT {{target}} HTTP/1.1\\r\\n\\r\\n'.encode())
        print(proxy.makefile('rb').readline().split()[1].decode())
"""
    answers = printed(attacker.run(code)).split()
    assert len(answers) == len(FORMS) + 7
    for form, answer in zip([*FORMS, *["CONNECT"] * 7], answers, strict=True):
        with subtests.test(form):
            assert answer in ("400", "403", "502")
            assert answer != "502" or form not in FORMS[:5]


@pytest.mark.parametrize(
    "head",
    [
        b"GET http://a.example/ HTTP/1.1\r\nX: a\nGET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX: a\rY: b\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\n",
        b"POST http://a.example/ HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
        b"POST http://a.example/ HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX: a\r\n folded: b\r\n\r\n",
        b"GET\thttp://a.example/\tHTTP/1.1\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX: \0\r\n\r\n",
        b"GET http://a.example/ x HTTP/1.1\r\n\r\n",
        # Split at spaces alone it asks a.example; split at any white space, the metadata service.
        b"GET\thttp://169.254.169.254/latest/\tHTTP/1.1\t http://a.example/ HTTP/1.1\r\n\r\n",
        b"GET\x0bhttp://127.0.0.1/ http://a.example/ HTTP/1.1\r\n\r\n",
        b"G(T http://a.example/ HTTP/1.1\r\n\r\n",
        b"GET http://a.example/\tx HTTP/1.1\r\n\r\n",
        b"GET http://a.example/\x85x HTTP/1.1\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\t\r\n\r\n",
        b"GET http://a.example/ HTTP/1.2\r\n\r\n",
        b"GET http://a.example/ HTTP/2.0\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nGET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX Y: a\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX\xe9: a\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX: \x0b\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nX: \x7f\r\n\r\n",
        b"POST http://a.example/ HTTP/1.1\r\nContent-Length: \x0b5\r\n\r\n",
        b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 5\xa0\r\n\r\n",
        b"POST http://a.example/ HTTP/1.1\r\nContent-Length:\r\n\r\n",
        b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
    ],
)
def test_heads_that_two_programs_could_read_differently_are_refused(head):
    with pytest.raises(ValueError):
        Request.parse(head)


def test_a_usual_head_passes_as_it_came():
    headers = (
        b"Accept: */*\r\nX-Empty:\r\nX-Tab: a\tb\r\nX-Latin: caf\xe9\r\nContent-Length: \t5 \r\n"
    )
    request = Request.parse(b"POST http://a.example/x?y HTTP/1.0\r\n" + headers + b"\r\n")
    assert request.body == 5
    sent = request.forward(absolute=True)
    assert sent.startswith(b"POST http://a.example:80/x?y HTTP/1.0\r\nHost: a.example\r\nAccept:")
    assert headers in sent


@pytest.mark.parametrize(
    ("target", "sent"),
    [
        ("A.Example.:443", b"CONNECT a.example:443 "),
        ("010.8.8.8:443", b"CONNECT 8.8.8.8:443 "),
        ("[2606:4700:0:0::1111]:443", b"CONNECT [2606:4700::1111]:443 "),
    ],
)
def test_the_next_proxy_gets_the_name_that_was_checked(target, sent):
    """And in the one form in which no program takes it for another: 010.8.8.8 is 8.8.8.8 or 10.8.8.8."""
    request = Request.parse(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
    assert request.connect().startswith(sent)


def test_the_host_header_is_the_target_and_not_the_clients():
    head = b"GET http://allowed.example/x HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\n\r\n"
    sent = Request.parse(head).forward(absolute=False)
    assert sent == b"GET /x HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "name", ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "localhost", "x.localhost",
             "printer.local", "metadata.google.internal", "a b", "%31%32%37.0.0.1", "127.0.0.1\\@x", "", "metadata", "box.home.arpa",
             "127.0x.0.1", "0x", "1.2.3.4.5", "256.0.0.1", "v1.a:b", "2606::1%x", "2606::1%\xe9", "2606::1%x\\@y", "y]", "[y]", "a..b",
             "\tx.example", "x.example\n", "b\xfccher.example", "\uff11\uff12\uff17.0.0.1", "x" * 64 + ".example", "x." * 127 + "example",
             "::ffff:0:169.254.169.254", "168.63.129.16"]
)  # fmt: skip
async def test_names_that_the_next_proxy_could_take_for_this_network(name):
    with pytest.raises(RefusedError):
        await Policy(upstream=("127.0.0.1", 9)).connect(name, 80)


class Upstream:
    """A forwarding proxy that would serve anything, and remembers what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    async def serve(self, reader, writer):
        try:
            while line := await reader.readline():
                self.asked.append(line)
                if line == b"\r\n":
                    writer.write(self.answer)
        except ConnectionError:
            pass
        finally:
            writer.close()


async def through(answer, request, *, wait=0.3):
    upstream = Upstream(answer)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(Policy(upstream=server.sockets[0].getsockname()[:2]))
    await proxy.start(listener)
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(request)
    await asyncio.sleep(wait)
    writer.close()
    got = await reader.read()
    proxy.close()
    server.close()
    await asyncio.sleep(0.05)
    return b"".join(upstream.asked), got


SECOND = b"GET http://169.254.169.254/latest/ HTTP/1.1\r\nHost: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


async def test_a_second_request_on_the_connection_does_not_reach_the_next_proxy():
    asked, _ = await through(OK, b"GET http://a.example/ HTTP/1.1\r\nHost: x\r\n\r\n" + SECOND)
    assert b"GET http://a.example:80/ HTTP/1.1" in asked
    assert b"169.254" not in asked


async def test_a_request_inside_a_request_line_does_not_reach_the_next_proxy():
    line = b"GET\thttp://169.254.169.254/latest/\tHTTP/1.1\t http://a.example/ HTTP/1.1\r\n\r\n"
    asked, got = await through(OK, line)
    assert asked == b""
    assert got.startswith(b"HTTP/1.1 400")


async def test_a_body_of_known_length_goes_through_and_nothing_after_it():
    asked, _ = await through(
        OK, b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbo\r\n" + SECOND
    )
    assert asked.endswith(b"bo\r\n")
    assert b"169.254" not in asked


async def test_a_body_without_a_length_does_not_reach_the_next_proxy():
    asked, _ = await through(
        OK,
        b"POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SECOND,
    )
    assert asked == b""


async def test_a_refused_tunnel_is_not_a_connection_to_the_next_proxy():
    refusal = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"
    asked, got = await through(refusal, b"CONNECT a.example:443 HTTP/1.1\r\n\r\n" + SECOND)
    assert asked == b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"
    assert got.startswith(b"HTTP/1.1 502")


async def test_connections_of_one_room_are_bounded():
    """Else a cell uses up the descriptors of the kernel's process."""
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(Policy())
    await proxy.start(listener)
    writers = []
    for _ in range(MAX_CONNECTIONS + 20):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writers.append(writer)
    await asyncio.sleep(0.1)
    assert len(proxy._tasks) == MAX_CONNECTIONS
    for writer in writers:
        writer.close()
    proxy.close()
    await asyncio.sleep(0.05)


def test_hosts_in_a_record_are_bounded():
    proxy = Proxy(Policy())
    for number in range(10 * MAX_HOSTS):
        proxy._note(f"h{number}:80", "failed: x")
    assert len(proxy.hosts) == MAX_HOSTS


def test_this_machines_own_addresses_are_known():
    assert is_own("127.0.0.1")
    assert not is_own("192.0.2.7")


async def test_a_public_address_of_this_machine_is_refused(monkeypatch):
    monkeypatch.setattr("dagger_kernel.engines.local.policy.is_own", lambda address: True)
    with pytest.raises(RefusedError, match="this machine"):
        await Policy().connect("1.1.1.1", 80)


def test_the_proxys_socket_is_not_reached_from_another_room(fresh_data_dir):
    """Each room's loopback is its own: a listener in one is not there in the other."""
    with Sandbox(data_dir=str(fresh_data_dir)) as one, Sandbox(data_dir=str(fresh_data_dir)) as two:
        listening = threading.Event()
        code = "import socket, time\ns = socket.create_server(('0.0.0.0', 4567)); a = socket.socket(socket.AF_UNIX); a.bind('\\0shared'); a.listen()\nprint('up', flush=True); time.sleep(3)\ndel s, a"
        thread = threading.Thread(
            target=one.run, args=(code,), kwargs={"on_stdout": lambda _text: listening.set()}
        )
        thread.start()
        assert listening.wait(30)
        found = printed(
            two.run(
                f"{REACH}\nprint(reach(socket.AF_INET, ('127.0.0.1', 4567)), reach(socket.AF_UNIX, '\\0shared'))"
            )
        )
        thread.join()
    assert found.split() == ["ConnectionRefusedError"] * 2
