"""The proxies that replicas are tried behind, as `docs/teams.md` says that they are set up."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

_PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin"

_HAPROXY = """
global
  maxconn 4000
  stats socket {directory}/proxy.sock mode 600
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout tunnel 1h
  # With 503 nothing has happened yet, so that it can be sent on to another.
  retry-on conn-failure 503
  retries 5
  option redispatch 1
  option http-buffer-request
frontend door
  bind 127.0.0.1:{port}
  default_backend replicas
backend replicas
  balance roundrobin
  option httpchk GET /readyz
  http-check send hdr Host 127.0.0.1
  # Whoever is only slow, as all are on a busy machine, is not taken for gone.
  timeout check 30s
  default-server check inter 200ms fall 1 rise 1
"""

_NGINX = """\
user {user};
pid {directory}/proxy.pid;
events {{
  worker_connections 4000;
}}
http {{
access_log off;
client_body_temp_path {directory}/body;
proxy_temp_path {directory}/proxy;
fastcgi_temp_path {directory}/fastcgi;
uwsgi_temp_path {directory}/uwsgi;
scgi_temp_path {directory}/scgi;
{rules}}}
"""


def haproxy_form(directory: Path, port: int, replicas: Sequence[str]) -> str:
    """Return what haproxy is told, of a port here and of the addresses of replicas."""
    servers = (f"  server replica{number} {each}\n" for number, each in enumerate(replicas))
    return _HAPROXY.format(directory=directory, port=port) + "".join(servers)


def nginx_rules(listen: str, replicas: dict[str, str]) -> str:
    """Return what nginx is told of replicas, by their names.

    It could send on to another by itself what was answered 503, but then it would do the same with
    what a replica has taken and not answered. So one after the other is asked by name.
    """
    lines = ["upstream replicas {"]
    lines += [f"  server {each} max_fails=0;" for each in replicas.values()]
    lines += ["}"]
    for name, address in replicas.items():
        lines += [f"upstream {name} {{", f"  server {address} max_fails=0;"]
        others = [each for each in replicas.values() if each != address]
        lines += [f"  server {each} max_fails=0 backup;" for each in others]
        lines += ["}"]
    lines += [
        "server {",
        f"  listen {listen};",
        "  client_max_body_size 16m;",
        "  proxy_http_version 1.1;",
        "  proxy_set_header Host $http_host;",
        '  proxy_set_header Connection "";',
        "  proxy_buffering off;",
        "  proxy_connect_timeout 2s;",
        "  proxy_read_timeout 1h;",
        "  proxy_next_upstream error timeout;",
        "  proxy_intercept_errors on;",
        "  recursive_error_pages on;",
    ]
    places = ["/", *(f"@{name}" for name in replicas)]
    for place, target, then in zip(places, ["replicas", *replicas], [*places[1:], ""], strict=True):
        rest = f" error_page 503 = {then};" if then else ""
        lines += [f"  location {place} {{ proxy_pass http://{target};{rest} }}"]
    return "\n".join([*lines, "}", ""])


def nginx_form(directory: Path, port: int, replicas: Sequence[str]) -> str:
    """Return what nginx is told, of a port here and of the addresses of replicas."""
    named = {f"replica{number}": each for number, each in enumerate(replicas)}
    rules = nginx_rules(f"127.0.0.1:{port}", named)
    user = "root" if os.getuid() == 0 else "nobody"
    return _NGINX.format(directory=directory, rules=rules, user=user)


class Proxy(NamedTuple):
    """A program that sends requests on to replicas, if it is here."""

    command: str | None
    options: tuple[str, ...]
    """What comes before the file with its settings."""
    form: Callable[[Path, int, Sequence[str]], str]


HAPROXY = Proxy(shutil.which("haproxy", path=_PLACES), ("-db", "-f"), haproxy_form)
NGINX = Proxy(
    shutil.which("nginx", path=_PLACES), ("-e", "stderr", "-g", "daemon off;", "-c"), nginx_form
)
