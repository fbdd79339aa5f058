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


def trusting(*chains: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for chain in chains:
        context.load_verify_locations(chain)
    return context
