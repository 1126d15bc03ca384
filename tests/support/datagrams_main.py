"""Owns: the process behind a DatagramSocket: a line of hex in is a datagram out, a datagram in is a line of JSON out."""
import json
import socket
import sys
import threading
from urllib.parse import unquote_to_bytes

name, to = (b"\0" + unquote_to_bytes(text) for text in sys.argv[1:3])
endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
endpoint.bind(name)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def receive() -> None:
    while True:
        data, sender = endpoint.recvfrom(65536)
        path = sender.replace(b"\0", b"").decode() if isinstance(sender, bytes) else ""
        say(json.dumps({"from": path, "hex": data.hex()}))


say("bound")
threading.Thread(target=receive, daemon=True).start()
for line in sys.stdin:
    try:
        endpoint.sendto(bytes.fromhex(line), to)
        say("sent ok")
    except OSError as error:
        say("sent %s" % error)
