"""The upstream and the three proxies: configurations that one would run in production, one worker
each, kept-alive connections on both sides, X-Forwarded-For set, no access log."""

import re
import shutil
import subprocess

from processes import Failure, Process, first_answer, free_port

BODY_BYTES = 1024

UPSTREAM = """\
daemon off;
pid {dir}/upstream.pid;
error_log {dir}/upstream.err;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  keepalive_timeout 300s;
  tcp_nodelay on;
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{ default_type text/plain; return 200 "{body}"; }}
  }}
}}
"""

# keepalive_requests: nginx closes a connection after 1000 by default, which wrk would answer with
# new ones; the other two have no such limit.
NGINX = """\
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/nginx.err;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  tcp_nodelay on;
  upstream app {{
    server 127.0.0.1:{upstream};
    keepalive 128;
    keepalive_requests 100000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{
      proxy_pass http://app;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
  }}
}}
"""

HAPROXY = """\
global
  nbthread 1
  maxconn 4000
defaults
  timeout connect 2s
  timeout client 75s
  timeout server 60s
frontend web
  mode http
  option http-keep-alive
  option forwardfor
  bind 127.0.0.1:{port} backlog 1024
  default_backend app
backend app
  mode http
  http-reuse safe
  server app 127.0.0.1:{upstream} maxconn 1000 pool-max-conn 128
"""

LEASEHOLD = """\
[node]
id = "bench"
[store]
type = "file"
file.dir = "{dir}/store"
[[lease]]
name = "bench"
[[gate]]
name = "web"
type = "http"
listen = "127.0.0.1:{port}"
upstream = "127.0.0.1:{upstream}"
[admin]
listen = "127.0.0.1:0"
[signal]
socket = "{dir}/leasehold.sock"
"""


def find(name):
    """Debian puts haproxy and nginx where not every PATH looks."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        raise Failure(f"{name} is not installed; `apt-get install wrk haproxy nginx-light` "
                      "installs what the bench needs")
    return path

# HAProxy copies unless told to splice; both are measured.
HAPROXY_TCP = """\
global
  nbthread 1
  maxconn 4000
defaults
  timeout connect 2s
  timeout client 1h
  timeout server 1h
frontend raw
  mode tcp
  bind 127.0.0.1:{port}
  default_backend app
backend app
  mode tcp
  server app 127.0.0.1:{upstream}
"""

HAPROXY_SPLICE = HAPROXY_TCP.replace(
    "  timeout connect", "  option splice-request\n  option splice-response\n  timeout connect")

LEASEHOLD_TCP = LEASEHOLD.replace('name = "web"\ntype = "http"', 'name = "raw"\ntype = "tcp"')


class Upstream:
    def __init__(self, directory, cpus):
        self.port = free_port()
        config = directory / "upstream.conf"
        config.write_text(UPSTREAM.format(dir=directory, port=self.port, body="x" * BODY_BYTES))
        self.process = Process([find("nginx"), "-p", directory, "-c", config],
                               directory / "upstream.log", cpus)
        first_answer(self.process, self.port)


def _command(name, binary, home, config):
    return {"leasehold": lambda: [binary, "run", "-c", config],
            "haproxy": lambda: [find("haproxy"), "-db", "-f", config],
            "nginx": lambda: [find("nginx"), "-p", home, "-c", config]}[name.partition("-")[0]]()


class Proxy:
    """One proxy, running. `startup` is seconds from exec to its first answer."""

    def __init__(self, name, text, directory, binary, upstream, cpus, ready=first_answer,
                 command=None):
        self.name = name
        self.port = free_port()
        home = directory / f"{name}-{self.port}"
        home.mkdir()
        config = home / "proxy.conf"
        config.write_text(text.format(dir=home, port=self.port, upstream=upstream))
        self.process = Process((command or _command)(name, binary, home, config),
                               home / "proxy.log", cpus)
        self.startup = ready(self.process, self.port)
        self.pid = self.process.worker()

    def end(self):
        self.process.end()


HTTP = {"leasehold": LEASEHOLD, "haproxy": HAPROXY, "nginx": NGINX}
TCP = {"leasehold": LEASEHOLD_TCP, "haproxy": HAPROXY_TCP, "haproxy-splice": HAPROXY_SPLICE}


def version_of(name, binary):
    command = {"leasehold": [binary, "version"], "haproxy": [find("haproxy"), "-v"],
               "nginx": [find("nginx"), "-v"], "wrk": [find("wrk"), "-v"]}[name]
    out = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    found = re.search(r"\d+\.\d+(\.\d+)?", out.stdout + out.stderr)
    return found.group(0) if found else "unknown"
