import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { holders, parseHotRestartSockets, readHotRestartSockets } from "../../../lib/adapters/hot_restart_sockets.ts";

function line(name: string, inode = 12956): string {
  return `000000003864b804: 00000002 00000000 00000000 0002 01 ${inode} ${name}`;
}

const padded = (name: string) => `@${name}`.padEnd(108, "@");

function names(text: string, baseId: number): string[] {
  return parseHotRestartSockets(text, baseId).map(({ role, udp, slot }) => `${role}${udp ? " udp" : ""} ${slot}`);
}

Deno.test("parseHotRestartSockets: the four of a generation, with the kernel's padding", () => {
  const text = [
    "Num       RefCount Protocol Flags    Type St Inode Path",
    line(padded("envoy_domain_socket_child_7711"), 1),
    line(padded("envoy_domain_socket_udp_parent_7711"), 2),
    line(padded("envoy_domain_socket_udp_child_7711"), 3),
    line(padded("envoy_domain_socket_parent_7711"), 4),
    line("/run/other.sock"),
    "",
  ].join("\n");
  deepStrictEqual(names(text, 771), ["child 1", "parent udp 1", "child udp 1", "parent 1"]);
  deepStrictEqual(parseHotRestartSockets(text, 771).map(({ inode }) => inode), [1, 2, 3, 4]);
});

Deno.test("parseHotRestartSockets: another base id's sockets are not taken for this one's", () => {
  const text = ["77100", "771", "17710", "7713", "7719", "7720", "7709"].map((id) =>
    line(padded(`envoy_domain_socket_parent_${id}`))
  ).join("\n");
  deepStrictEqual(names(text, 771), []);
  deepStrictEqual(names(text, 7710), ["parent 0"]);
});

Deno.test("parseHotRestartSockets: base id 0 has the numbers 0 to 2", () => {
  const text = ["0", "2", "3", "10"].map((id) => line(padded(`envoy_domain_socket_parent_${id}`))).join("\n");
  deepStrictEqual(names(text, 0), ["parent 0", "parent 2"]);
  deepStrictEqual(names(text, 1), ["parent 0"]);
});

Deno.test("parseHotRestartSockets: from 2^31 on the names have the number with its sign extended to 64 bits", () => {
  const sockets = (...numbers: string[]) =>
    numbers.map((number) => line(padded(`envoy_domain_socket_parent_${number}`))).join("\n");
  // As Envoy 1.40.0 names them for --base-id 262729538, and at both ends of what a base id may be.
  deepStrictEqual(names(sockets("18446744072041879700", "18446744072041879701"), 262_729_538), [
    "parent 0",
    "parent 1",
  ]);
  deepStrictEqual(names(sockets("2147483640", "2147483642"), 214_748_364), ["parent 0", "parent 2"]);
  deepStrictEqual(names(sockets("18446744071562067970"), 214_748_365), ["parent 0"]);
  deepStrictEqual(names(sockets("18446744073709551600", "18446744073709551602"), 429_496_728), [
    "parent 0",
    "parent 2",
  ]);
});

Deno.test("parseHotRestartSockets: the number without its sign is nobody's from 2^31 on", () => {
  deepStrictEqual(names(line(padded("envoy_domain_socket_parent_2627295380")), 262_729_538), []);
});

Deno.test("parseHotRestartSockets: names that only begin alike are others", () => {
  const others = [
    "@envoy_domain_socket_parent_70x",
    "@my_envoy_domain_socket_parent_70",
    "envoy_domain_socket_parent_70",
  ];
  deepStrictEqual(names(others.map((name) => line(name)).join("\n"), 7), []);
  deepStrictEqual(names(line("@envoy_domain_socket_parent_70"), 7), ["parent 0"]);
});

Deno.test("holders: finds the process that holds a socket", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  strictEqual(listener.addr.port > 0, true);
  const inodes = [...Deno.readDirSync("/proc/self/fd")].map(({ name }) => {
    try {
      return Number(/^socket:\[(\d+)\]$/.exec(Deno.readLinkSync(`/proc/self/fd/${name}`))?.[1]);
    } catch {
      return NaN;
    }
  });
  const inode = inodes.find(Number.isInteger) ?? 0;
  deepStrictEqual(await holders([{ role: "parent", udp: false, slot: 0, inode }]), [Deno.pid]);
  deepStrictEqual(await holders([{ role: "parent", udp: false, slot: 0, inode: 1 }]), []);
});

Deno.test("readHotRestartSockets: reads this machine's list", async () => {
  deepStrictEqual(await readHotRestartSockets(399_999_999), []);
});
