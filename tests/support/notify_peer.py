# Owns: the receiving end of NOTIFY_SOCKET: prints one JSON line a datagram, with the sender's pid. Must not: answer.
import json, os, socket, struct, sys

address = sys.argv[1]
peer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
peer.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
peer.bind("\0" + address[1:] if address.startswith("@") else address)
print(json.dumps({"listening": address}), flush=True)
while True:
    text, ancillary, _, _ = peer.recvmsg(8192, 256)
    pid = struct.unpack("iii", ancillary[0][2])[0]
    print(json.dumps({"pid": pid, "lines": text.decode().split("\n")}), flush=True)
