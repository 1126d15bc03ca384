// Owns: showing steps while they happen: a line that counts on a terminal, plain lines elsewhere.
// Must not: know what the steps mean.

import { oneLine, showMs } from "../observe/words.ts";
import { painter, type Terminal } from "./terminal.ts";

export interface Progress {
  /** `done` is over, `next` goes on. */
  step(done: string, next: string | undefined): void;
  /** Clears what counts. */
  end(): void;
}

const redrawMs = 100;

export function openProgress(terminal: Terminal, nowMs: () => number = () => performance.now()): Progress {
  const paint = painter(terminal.colour);
  const beganMs = nowMs();
  let current: string | undefined;
  let sinceMs = beganMs;
  let timer: ReturnType<typeof setInterval> | undefined;
  const clear = () => {
    if (terminal.interactive && current !== undefined) terminal.out("\r\x1b[K");
  };
  const draw = () => {
    if (current !== undefined) terminal.out(`\r\x1b[K${paint("dim", `... ${current}, ${showMs(nowMs() - sinceMs)}`)}`);
  };
  return {
    step(done, next) {
      clear();
      terminal.out(`${paint("dim", showMs(nowMs() - beganMs).padStart(8))}  ${oneLine(done)}\n`);
      current = next;
      sinceMs = nowMs();
      if (!terminal.interactive) return;
      draw();
      timer ??= setInterval(draw, redrawMs);
    },
    end() {
      clearInterval(timer);
      clear();
      current = undefined;
    },
  };
}
