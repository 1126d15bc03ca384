// Owns: traffic and its upstream as a process of the node's network. Must not: decide; it obeys lines on stdin.
//
//   {"hold": {"chunks": 50, "everyMs": 100}}   answers {"held": N} when its first chunk has come
//   {"snapshot": true}                         answers the report so far
//   {"stop": true}                             answers the report, and ends; the end of stdin ends it too
import { TextLineStream } from "./lines.ts";
import { startTraffic } from "../../support/traffic.ts";
import { startUpstream } from "../../support/upstream.ts";

const { upstreamPort, ...options } = JSON.parse(Deno.args[0]!);
const encoder = new TextEncoder();
const answer = (value: unknown) => void Deno.stdout.writeSync(encoder.encode(`${JSON.stringify(value)}\n`));

await using _upstream = startUpstream(upstreamPort, "0.0.0.0");
await using traffic = startTraffic(options);
let held = 0;
answer({ started: true });
for await (const line of Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())) {
  const command = JSON.parse(line);
  if (command.hold !== undefined) {
    await traffic.hold(command.hold).opened;
    answer({ held: ++held });
  } else if (command.snapshot === true) answer(traffic.snapshot());
  else break;
}
answer(await traffic.stop());
