import assert from "node:assert/strict";
import {
  domainSockets,
  freeBaseId,
  hasSegment,
  removeSegment,
  segmentFlags,
  segmentPath,
} from "../../support/base_ids.ts";
import { canBind, freePort, freePorts } from "../../support/ports.ts";

Deno.test("free ports differ, can be bound and lie below the ephemeral range", () => {
  const ports = freePorts(300);
  assert.equal(new Set(ports).size, 300);
  assert.ok(ports.every((port) => port >= 20_000 && port < 32_000));
  for (const port of ports) Deno.listen({ port }).close();
});

Deno.test("another isolate of this process is given other ports", async () => {
  const support = import.meta.resolve("../../support/ports.ts");
  const code = `import { freePorts } from "${support}"; postMessage(freePorts(300));
    onmessage = () => postMessage(dispatchEvent(new Event("unload")));`;
  const start = () => new Worker(`data:application/javascript,${encodeURIComponent(code)}`, { type: "module" });
  const ask = (worker: Worker) =>
    new Promise<number[]>((resolve) => worker.onmessage = (message: MessageEvent) => resolve(message.data));
  const workers = [start(), start()];
  const [some = [], others = []] = await Promise.all(workers.map(ask));
  // A terminated worker gets no unload event, with which it would give its ports back.
  const released = workers.map(ask);
  workers.forEach((worker) => worker.postMessage("unload"));
  await Promise.all(released);
  workers.forEach((worker) => worker.terminate());
  assert.equal(new Set([...some, ...others]).size, 600);
});

Deno.test("a port that somebody listens on does not count as free", () => {
  const port = freePort();
  using _listener = Deno.listen({ hostname: "127.0.0.1", port });
  assert.equal(canBind(port), false);
});

Deno.test("base ids differ and carry no trace", () => {
  const ids = Array.from({ length: 50 }, freeBaseId);
  assert.equal(new Set(ids).size, 50);
  assert.ok(ids.every((id) => id * 10 < 2 ** 31 && !hasSegment(id)));
});

Deno.test("traces of a base id are seen: segment, flags and sockets of all three generations", () => {
  const baseId = freeBaseId();
  const bytes = new Uint8Array(104);
  bytes[96] = 1;
  Deno.writeFileSync(segmentPath(baseId), bytes);
  assert.equal(hasSegment(baseId), true);
  assert.equal(segmentFlags(baseId), 1n);
  removeSegment(baseId);
  removeSegment(baseId);
  assert.equal(hasSegment(baseId), false);

  const name = `envoy_domain_socket_udp_child_${baseId * 10 + 2}`;
  using _socket = Deno.listen({ transport: "unix", path: `\0${name}`.padEnd(108, "\0") });
  assert.deepEqual(domainSockets(baseId), [name]);
});
