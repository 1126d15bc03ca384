import assert from "node:assert/strict";
import { mayDo, parseClientRole, roleOf } from "../../../lib/config/client_role.ts";

const rules = ["read:DNS:metrics.example", "operate:URI:spiffe://x/ci", "admin:CN=alice,O=ops"].map((text) =>
  parseClientRole(text) ?? assert.fail(text)
);

Deno.test("parseClientRole takes a role and a name, and nothing else", () => {
  assert.deepEqual(parseClientRole("admin:CN=alice, O=ops")?.match, { subject: ["CN=alice", "O=ops"] });
  assert.deepEqual(parseClientRole("read:URI:spiffe://a/b:1")?.match, { alternative: "URI:spiffe://a/b:1" });
  for (const text of ["", "admin", "admin:", "root:CN=a", "read:DNS:", "read:alice", "read:CN=", "read:IP:10.0.0.1"]) {
    assert.equal(parseClientRole(text), undefined, text);
  }
});

Deno.test("roleOf gives the highest role that all of a rule fits, and none to others", () => {
  const of = (subject: string[], alternatives: string[] = []) => roleOf({ subject, alternatives }, rules);
  assert.equal(of(["CN=alice", "O=ops"]), "admin");
  assert.equal(of(["CN=alice"]), undefined);
  assert.equal(of(["CN=alice", "O=dev"], ["DNS:metrics.example"]), "read");
  assert.equal(of([], ["DNS:metrics.example", "URI:spiffe://x/ci"]), "operate");
  assert.equal(of(["CN=URI:spiffe://x/ci"], ["DNS:URI:spiffe://x/ci", "URI:spiffe://x/ci/more"]), undefined);
});

Deno.test("mayDo lets each role do what those before it may", () => {
  assert.deepEqual(
    (["read", "operate", "admin"] as const).map((role) =>
      (["read", "operate", "admin"] as const).map((needed) => mayDo(role, needed))
    ),
    [[true, false, false], [true, true, false], [true, true, true]],
  );
});
