import { deepStrictEqual, strictEqual } from "node:assert/strict";
import {
  ancestry,
  countUsableCpus,
  parseAffinity,
  parseCfs,
  parseCgroupMounts,
  parseCgroupPaths,
  parseCpuMax,
  usableCpus,
} from "../../../lib/adapters/cpus.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

const MOUNT_V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
const MOUNT_V1 = [
  "31 30 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct",
  "32 30 0:28 /docker/abc /sys/fs/cgroup/cpuset ro,nosuid - cgroup cgroup rw,cpuset",
].join("\n");

function fakeRoot(dir: TempDir, cpus: string, cgroup: string, mountinfo: string): void {
  dir.write("proc/self/status", `Name:\tdeno\nCpus_allowed:\tff\nCpus_allowed_list:\t${cpus}\nMems_allowed_list:\t0\n`);
  dir.write("proc/self/cgroup", cgroup);
  dir.write("proc/self/mountinfo", mountinfo);
}

Deno.test("parseAffinity: ranges and single CPUs", () => {
  strictEqual(parseAffinity("Cpus_allowed_list:\t0-3\n"), 4);
  strictEqual(parseAffinity("A:\t1\nCpus_allowed_list:\t1,3,8-11\nB:\t2"), 6);
  strictEqual(parseAffinity("Cpus_allowed_list:\tnonsense\n"), undefined);
  strictEqual(parseAffinity(""), undefined);
});

Deno.test("parseCpuMax, parseCfs: a quota in CPUs, or none", () => {
  strictEqual(parseCpuMax("150000 100000\n"), 1.5);
  strictEqual(parseCpuMax("max 100000\n"), undefined);
  strictEqual(parseCpuMax(""), undefined);
  strictEqual(parseCfs("50000\n", "100000\n"), 0.5);
  strictEqual(parseCfs("-1\n", "100000\n"), undefined);
  strictEqual(parseCfs("", ""), undefined);
});

Deno.test("usableCpus: the tightest limit, rounded up, at least one", () => {
  strictEqual(usableCpus(8, []), 8);
  strictEqual(usableCpus(8, [1.5, 4]), 2);
  strictEqual(usableCpus(8, [0.1]), 1);
  strictEqual(usableCpus(2, [64]), 2);
});

Deno.test("parseCgroupPaths, parseCgroupMounts: both versions", () => {
  deepStrictEqual(parseCgroupPaths("0::/a/b\n"), { v2: "/a/b" });
  deepStrictEqual(parseCgroupPaths("5:cpuset:/x\n4:cpu,cpuacct:/docker/abc\n0::/\n"), { v1: "/docker/abc", v2: "/" });
  deepStrictEqual(parseCgroupPaths("4:cpuacct:/x\n"), {});
  deepStrictEqual(parseCgroupMounts(MOUNT_V2), { v2: { root: "/", point: "/sys/fs/cgroup" } });
  deepStrictEqual(parseCgroupMounts(MOUNT_V1), { v1: { root: "/docker/abc", point: "/sys/fs/cgroup/cpu,cpuacct" } });
});

Deno.test("ancestry: from the own group to the mount, also where a container sees a part only", () => {
  const mount = { root: "/", point: "/cg" };
  deepStrictEqual(ancestry(mount, "/a/b"), ["/cg/a/b", "/cg/a", "/cg"]);
  deepStrictEqual(ancestry(mount, "/"), ["/cg"]);
  deepStrictEqual(ancestry({ root: "/docker/abc", point: "/cg" }, "/docker/abc"), ["/cg"]);
  deepStrictEqual(ancestry({ root: "/docker/abc", point: "/cg" }, "/docker/abc/x"), ["/cg/x", "/cg"]);
  // A cgroup namespace shows a group outside of it by climbing.
  deepStrictEqual(ancestry(mount, "/../../x"), ["/cg/x", "/cg"]);
});

Deno.test("countUsableCpus: version 2, a limit on any ancestor counts", async () => {
  await using dir = tempDir();
  fakeRoot(dir, "0-7", "0::/kube/pod/container\n", MOUNT_V2);
  dir.write("sys/fs/cgroup/kube/pod/container/cpu.max", "max 100000\n");
  strictEqual(countUsableCpus(dir.path), 8);
  dir.write("sys/fs/cgroup/kube/pod/cpu.max", "250000 100000\n");
  strictEqual(countUsableCpus(dir.path), 3);
  dir.write("sys/fs/cgroup/kube/pod/container/cpu.max", "10000 100000\n");
  strictEqual(countUsableCpus(dir.path), 1);
});

Deno.test("countUsableCpus: version 1, the container's own group at the mount", async () => {
  await using dir = tempDir();
  fakeRoot(dir, "0,2,4,6", "4:cpu,cpuacct:/docker/abc\n", MOUNT_V1);
  strictEqual(countUsableCpus(dir.path), 4);
  dir.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  dir.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  strictEqual(countUsableCpus(dir.path), 4);
  dir.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  strictEqual(countUsableCpus(dir.path), 2);
});

Deno.test("countUsableCpus: this machine, and one without /proc", async () => {
  await using dir = tempDir();
  strictEqual(countUsableCpus(dir.path), navigator.hardwareConcurrency);
  const here = countUsableCpus();
  strictEqual(here >= 1 && here <= 1024, true, `${here}`);
});
