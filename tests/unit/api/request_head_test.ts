import assert from "node:assert/strict";
import { headEnd, parseHead, type RequestHead } from "../../../lib/api/request_head.ts";

function parse(text: string, mostBodyBytes = 100) {
  return parseHead(new TextEncoder().encode(text), mostBodyBytes);
}

function taken(text: string): RequestHead {
  const parsed = parse(text);
  return "status" in parsed ? assert.fail(`${parsed.status}: ${parsed.detail}`) : parsed;
}

function status(text: string): number | undefined {
  const parsed = parse(text);
  return "status" in parsed ? parsed.status : undefined;
}

Deno.test("request head ends after the first empty line", () => {
  const bytes = new TextEncoder().encode("GET / HTTP/1.1\r\n\r\nrest\r\n\r\n");
  assert.equal(headEnd(bytes), 18);
  assert.equal(headEnd(bytes.subarray(0, 17)), -1);
  assert.equal(headEnd(new Uint8Array(0)), -1);
});

Deno.test("request head gives method, target, headers and the length of the body", () => {
  const head = taken("POST /v1/x?wait=live HTTP/1.1\r\nHost: epochd\r\nX-A:  b \r\nContent-Length: 12\r\n\r\n");
  assert.equal(head.method, "POST");
  assert.equal(head.target, "/v1/x?wait=live");
  assert.equal(head.headers.get("x-a"), "b");
  assert.equal(head.bodyBytes, 12);
  assert.equal(head.expectsContinue, false);
  assert.equal(taken("GET / HTTP/1.0\r\n\r\n").bodyBytes, 0);
  assert.equal(taken("POST / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n").expectsContinue, true);
});

Deno.test("request head refuses what is no HTTP/1 request", () => {
  const bad = [
    "garbage\r\n\r\n",
    "\x16\x03\x01\x02\x00\r\n\r\n",
    "get / HTTP/1.1\r\n\r\n",
    "GET  / HTTP/1.1\r\n\r\n",
    "GET http://x/ HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nno colon\r\n\r\n",
    "GET / HTTP/1.1\r\nA : b\r\n\r\n",
    "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
    "GET / HTTP/1.1\r\nA: b\nX: y\r\n\r\n",
    "GET / HTTP/1.1\r\nA: \0\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 0x10\r\n\r\n",
  ];
  for (const text of bad) assert.equal(status(text), 400, JSON.stringify(text));
  assert.equal(status("PRI * HTTP/2.0\r\n\r\n"), 400);
  assert.equal(status("GET / HTTP/2.0\r\n\r\n"), 505);
});

Deno.test("request head refuses bodies that are too large or of unknown length", () => {
  assert.equal(status("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"), 413);
  assert.equal(status("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n"), undefined);
  assert.equal(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 411);
  assert.equal(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"), 411);
  assert.equal(status("POST / HTTP/1.1\r\nExpect: magic\r\n\r\n"), 417);
});
