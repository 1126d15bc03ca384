// Owns: a socket of node:net or node:tls as the connection that the API's HTTP is spoken over. Must not: read ahead of it.

import type { Socket } from "node:net";
import type { Connection } from "./connection.ts";

/** After the last answer, for the client to take it. */
const lingerMs = 500;

export function socketConnection(socket: Socket): Connection {
  const chunks: Uint8Array[] = [];
  let ended = false;
  let wake = () => {};
  const end = () => {
    ended = true;
    wake();
  };
  socket.on("data", (chunk: Uint8Array) => {
    chunks.push(chunk);
    // One chunk is held, the rest waits in the kernel: a client can't fill this process.
    socket.pause();
    wake();
  });
  socket.on("end", end);
  socket.on("close", end);
  socket.on("error", end);
  let closed = false;
  return {
    async read(buffer) {
      while (chunks.length === 0) {
        if (ended || closed) return null;
        await new Promise<void>((resolve) => {
          wake = resolve;
          socket.resume();
        });
      }
      const chunk = chunks[0]!;
      const part = chunk.subarray(0, buffer.length);
      buffer.set(part);
      if (part.length === chunk.length) chunks.shift();
      else chunks[0] = chunk.subarray(part.length);
      return part.length;
    },
    write(bytes) {
      if (closed || socket.destroyed) return Promise.reject(new Error("the connection is closed"));
      return new Promise((resolve, reject) => {
        const gone = () => reject(new Error("the client has gone"));
        socket.once("close", gone);
        socket.write(bytes, (error) => {
          socket.off("close", gone);
          if (error) reject(error);
          else resolve(bytes.length);
        });
      });
    },
    close() {
      if (closed) return;
      closed = true;
      wake();
      socket.end();
      const timer = setTimeout(() => socket.destroy(), lingerMs);
      Deno.unrefTimer(timer as unknown as number);
    },
  };
}
