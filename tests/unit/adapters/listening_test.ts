import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { readListening } from "../../../lib/adapters/listening.ts";
import { freePort } from "../../support/ports.ts";
import { tempDir } from "../../support/tempdir.ts";

const tcp = (port: number) => ({ kind: "tcp", host: "127.0.0.1", port } as const);

Deno.test("readListening: this process' own sockets, the admin's and others", async () => {
  const [adminPort, otherPort] = [freePort(), freePort()];
  const traffic = Deno.listen({ hostname: "127.0.0.1", port: otherPort });
  try {
    strictEqual((await readListening(Deno.pid, tcp(adminPort)))?.admin, false);
    strictEqual((await readListening(Deno.pid, tcp(adminPort)))?.traffic, true);
    strictEqual((await readListening(Deno.pid, tcp(otherPort)))?.admin, true);
  } finally {
    traffic.close();
  }
  strictEqual((await readListening(Deno.pid, tcp(otherPort)))?.admin, false);
});

Deno.test("readListening: an admin on a unix socket", async () => {
  await using dir = tempDir();
  const path = dir.at("admin.sock");
  const listener = Deno.listen({ transport: "unix", path });
  strictEqual((await readListening(Deno.pid, { kind: "unix", path }))?.admin, true);
  strictEqual((await readListening(Deno.pid, { kind: "unix", path: dir.at("other") }))?.admin, false);
  listener.close();
});

Deno.test("readListening: a connection, an ended listener and another process' socket don't count", async () => {
  await using dir = tempDir();
  const row = (port: string, state: string, inode: number) =>
    `   0: 0100007F:${port} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 100 0 0 10 0`;
  const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
  // 26ad: 9901.
  dir.write(
    "proc/7/net/tcp",
    [head, row("26AD", "0A", 100), row("1F90", "0A", 101), row("1F90", "01", 102), ""].join("\n"),
  );
  dir.write("proc/7/net/udp", [head, row("1F90", "01", 103), ""].join("\n"));
  dir.write("proc/7/net/unix", "Num RefCount Protocol Flags Type St Inode Path\n");
  Deno.mkdirSync(dir.at("proc/7/fd"));
  const hold = (fd: number, inode: number) => Deno.symlinkSync(`socket:[${inode}]`, dir.at(`proc/7/fd/${fd}`));
  hold(3, 102);
  hold(4, 103);
  const look = () => readListening(7, tcp(9901), dir.at("proc"));
  deepStrictEqual(await look(), { admin: false, traffic: false });
  hold(5, 101);
  deepStrictEqual(await look(), { admin: false, traffic: true });
  hold(6, 100);
  deepStrictEqual(await look(), { admin: true, traffic: true });
});

Deno.test("readListening: nothing is known of a process that is gone", async () => {
  await using dir = tempDir();
  strictEqual(await readListening(7, tcp(9901), dir.at("proc")), undefined);
});
