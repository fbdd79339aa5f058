"""Certificates that nobody else trusts."""

import ssl
import subprocess
from pathlib import Path


def make(directory: Path, name: str, *options: str) -> Path:
    """Make a certificate of 127.0.0.1 that nobody else trusts, with its key beside it."""
    path = directory / f"{name}.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 2"
    words += f" -subj /CN={name} -addext subjectAltName=IP:127.0.0.1"
    files = ("-keyout", str(path.with_suffix(".key")), "-out", str(path))
    command = [*words.split(), *(options or ("-nodes",)), *files]
    subprocess.run(command, check=True, capture_output=True)
    return path


def issued(directory: Path, name: str, by: Path) -> Path:
    """Make a chain of a certificate that another has issued, and of that one."""
    options = ("-nodes", "-CA", str(by), "-CAkey", str(by.with_suffix(".key")))
    chain = make(directory, name, *options, "-addext", "basicConstraints=critical,CA:FALSE")
    chain.write_text(chain.read_text() + by.read_text())
    return chain


def trusting(*chains: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for chain in chains:
        context.load_verify_locations(chain)
    return context
