"""Owns: HTTP/3 connections held for a while each, and a line of JSON on stdout for what becomes of every request.

Must not: count, retry, or decide whose fault a loss is. Ends when its stdin does; the line "leave" means: open no new
connection. aioquic is no library of Deno's, so that this one client is in Python.
"""
import argparse
import asyncio
import json
import random
import sys
import time

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, StreamReset

GOAWAY = 7
TIMEOUT_S = 5.0
AFTER_LOSS_S = 0.02


class Lost(Exception):
    def __init__(self, kind, detail):
        super().__init__(detail)
        self.kind = kind


class Phase:
    leaving = False
    over = False


class Http(H3Connection):
    """aioquic skips a GOAWAY without a word, and has no event for it: caught where each frame's type is looked at."""

    gone_away = False

    def _check_control_frame_type(self, frame_type):
        super()._check_control_frame_type(frame_type)
        if frame_type == GOAWAY:
            self.gone_away = True


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = None
        self.waiting = {}
        self.status = {}
        self.ended = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = Http(self._quic)
        if isinstance(event, ConnectionTerminated):
            self.ended = "closed with code %d %s" % (event.error_code, event.reason_phrase)
            for waiter in self.waiting.values():
                if not waiter.done():
                    waiter.set_exception(Lost("reset", self.ended))
        if isinstance(event, StreamReset):
            self.fail(event.stream_id, "reset", "stream reset with code %d" % event.error_code)
        if self.http is None:
            return
        for seen in self.http.handle_event(event):
            if isinstance(seen, HeadersReceived) and seen.stream_id not in self.status:
                self.status[seen.stream_id] = dict(seen.headers).get(b":status", b"none").decode()
            if isinstance(seen, (HeadersReceived, DataReceived)) and seen.stream_ended:
                waiter = self.waiting.get(seen.stream_id)
                if waiter is not None and not waiter.done():
                    waiter.set_result(None)

    def fail(self, stream_id, kind, detail):
        waiter = self.waiting.get(stream_id)
        if waiter is not None and not waiter.done():
            waiter.set_exception(Lost(kind, detail))

    async def ask(self, authority):
        if self.ended is not None:
            raise Lost("reset", self.ended)
        stream_id = self._quic.get_next_available_stream_id()
        headers = {b":method": b"GET", b":scheme": b"https", b":authority": authority, b":path": b"/"}
        waiter = self.waiting[stream_id] = asyncio.get_running_loop().create_future()
        self.http.send_headers(stream_id, list(headers.items()), end_stream=True)
        self.transmit()
        try:
            await asyncio.wait_for(waiter, TIMEOUT_S)
        except asyncio.TimeoutError:
            raise Lost("unanswered", "no answer in %g s" % TIMEOUT_S)
        finally:
            del self.waiting[stream_id]
        status = self.status.pop(stream_id, "none")
        if status != "200":
            raise Lost("wrong", "status %s" % status)


def tell(event, **fields):
    # Milliseconds, as everybody else's; one write, so that lines of several connections don't mix.
    sys.stdout.write(json.dumps({"event": event, "atMs": time.time() * 1000, **fields}) + "\n")
    sys.stdout.flush()


async def hold(asked, phase):
    """One connection after the other, each asked again and again for as long as a session is to last."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
    configuration.load_verify_locations(asked.authority)
    every = asked.every_ms / 1000
    await asyncio.sleep(random.random() * asked.session_ms / 1000)
    while not phase.over and not phase.leaving:
        opened = sent = time.monotonic()
        answered = None
        tell("sent")
        try:
            async with connect(asked.host, asked.port, configuration=configuration, create_protocol=Client) as client:
                told = False
                while True:
                    await client.ask(asked.host.encode())
                    answered = time.monotonic()
                    tell("answered", tookMs=(answered - sent) * 1000)
                    if client.http.gone_away and not told:
                        told = True
                        tell("toldToGo")
                    await asyncio.sleep(max(0.0, every - (time.monotonic() - sent)))
                    if phase.over or time.monotonic() - opened > asked.session_ms / 1000:
                        break
                    sent = time.monotonic()
                    tell("sent")
        except Lost as lost:
            tell("lost", kind=lost.kind, agoMs=(time.monotonic() - sent) * 1000, detail=str(lost))
            await asyncio.sleep(AFTER_LOSS_S)
        except (ConnectionError, OSError, asyncio.TimeoutError) as error:
            # A handshake that nobody answers.
            detail = "connect: %s %s" % (type(error).__name__, error)
            tell("lost", kind="unanswered", agoMs=(time.monotonic() - sent) * 1000, detail=detail)
            await asyncio.sleep(AFTER_LOSS_S)
        if answered is not None:
            now = time.monotonic()
            tell("session", openedAgoMs=(now - opened) * 1000, lastAgoMs=(now - answered) * 1000)


async def main():
    options = argparse.ArgumentParser()
    options.add_argument("--host", required=True)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--authority", required=True)
    options.add_argument("--connections", type=int, required=True)
    options.add_argument("--every-ms", type=float, required=True)
    options.add_argument("--session-ms", type=float, required=True)
    asked = options.parse_args()
    phase = Phase()

    async def listen():
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            phase.leaving = phase.leaving or line == b"leave\n"
        phase.over = True

    listening = asyncio.create_task(listen())
    tell("ready")
    await asyncio.gather(*(hold(asked, phase) for _ in range(asked.connections)))
    listening.cancel()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
