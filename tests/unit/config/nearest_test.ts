import assert from "node:assert/strict";
import { nearest } from "../../../lib/config/nearest.ts";

const known = ["drain_time", "debounce", "base_id", "poll", "jitter"];

Deno.test("nearest finds one letter missing, added, replaced or swapped", () => {
  assert.equal(nearest("drain_tim", known), "drain_time");
  assert.equal(nearest("debouncee", known), "debounce");
  assert.equal(nearest("base-id", known), "base_id");
  assert.equal(nearest("opll", known), "poll");
  assert.equal(nearest("JITTER", known), "jitter");
});

Deno.test("nearest says nothing about words that are far from all", () => {
  assert.equal(nearest("retry_limit", known), undefined);
  assert.equal(nearest("x", known), undefined);
  assert.equal(nearest("", known), undefined);
});
