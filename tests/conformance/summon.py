"""Have a client that stands by do as the suite asks: `summon.py SOCKET WHO URL`, and no imports."""

import json
import os
import socket
import sys

if __name__ == "__main__":
    place, who, url = sys.argv[1:]
    variables = {name: each for name, each in os.environ.items() if name.startswith("MCP_")}
    asked = json.dumps({"who": who, "url": url, "variables": variables}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as desk:
        desk.connect(place)
        socket.send_fds(desk, [asked], [1, 2])
        status = desk.recv(1)
    sys.exit(status[0] if status else 1)
