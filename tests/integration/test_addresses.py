"""Every kind of address: IPv6, Unix sockets, names; for gates, upstreams and the API."""

import os
import socket
import stat
import subprocess
import threading

from harness.client import get
from harness.raw import Raw
from harness.sidecar import binary
from harness.wait import wait_for


def unix_echo(path, things):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    things.callback(listener.close)

    def serve():
        try:
            while True:
                connection, _ = listener.accept()
                while data := connection.recv(65536):
                    connection.sendall(data)
                connection.close()
        except OSError:
            pass
    threading.Thread(target=serve, daemon=True).start()


def test_gates_listen_on_ipv6_and_unix_sockets_and_go_to_unix_sockets(
        sidecar, app, tmp_path, things):
    backend = app("a")
    one = sidecar("s1", tmp_path / "store")  # for its short directory
    place = os.path.dirname(one.socket_path)
    unix_echo(place + "/echo", things)
    one = sidecar("s2", tmp_path / "store", gates=[
        {"name": "six", "type": "http", "listen": "[::1]:0", "upstream": backend.address},
        {"name": "unix", "type": "http", "listen": f"unix:{place}/web", "upstream":
            f"localhost:{backend.port}"},
        {"name": "raw", "type": "tcp", "listen": f"unix:{place}/raw", "upstream":
            f"unix:{place}/echo"}]).start()
    one.wait_active()
    assert one.gate("six")[0] == "::1"
    assert get(one.gate("six")).body == b"a 1"
    with Raw(place + "/web") as raw:
        raw.send(b"GET / HTTP/1.1\r\nHost: app\r\n\r\n")
        assert raw.response().body == b"a 1"
    with Raw(place + "/raw") as raw:
        assert raw.send(b"words").exactly(5) == b"words"
        raw.finish()
        assert raw.end() == "closed", "half-close is kept"
    assert stat.S_ISSOCK(os.stat(place + "/web").st_mode)
    assert one.stop() == 0
    for name in ("web", "raw"):
        wait_for(lambda: not os.path.exists(f"{place}/{name}"), 1, f"{name} is left behind")


def test_the_api_on_a_unix_socket_is_found_by_the_command_line(sidecar, tmp_path):
    place = os.path.dirname(sidecar("s1", tmp_path / "store").socket_path)
    one = sidecar("s2", tmp_path / "store", more={"admin": {"listen": f"unix:{place}/api"}}).start()
    one.wait_active()
    for where in (["--admin", f"unix:{place}/api"], ["-c", str(one.config_path)]):
        done = subprocess.run([binary(), "describe", *where], capture_output=True, text=True,
                              timeout=10, check=False)
        assert done.returncode == 0 and "s2" in done.stdout, done
    with Raw(place + "/api") as raw:
        raw.send(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert raw.response().status == 200
