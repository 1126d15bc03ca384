// Owns: datagrams to the service manager (sd_notify): one socket that never blocks, and the clock that RELOADING=1 speaks of.
// Must not: know what is told, or fail its user: where it can't be had, the problem is a value.
// By libc itself: Deno 2.6.10 has no abstract unix datagram sockets (`@...`), and both need an unstable flag for the others.

/** `sun_path` has 108 bytes; a path ends with a zero. */
const LONGEST_BYTES = 107;
const AF_UNIX = 1;
/** SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, the same on x86-64 and arm64. */
const DATAGRAM = 2 | 0o2000000 | 0o4000;
const MSG_NOSIGNAL = 0x4000;
const CLOCK_MONOTONIC = 1;
const EAGAIN = 11;

const encoder = new TextEncoder();

export interface NotifySocket {
  /** Resolves nothing and waits for nothing: the problem, or undefined. */
  send(text: string): string | undefined;
  /** CLOCK_MONOTONIC in microseconds, as a text. */
  monotonicUsec(): string;
  close(): void;
}

/** `address`: what NOTIFY_SOCKET says, a path or an abstract name with `@` in front. */
export function openNotifySocket(address: string): NotifySocket | { readonly problem: string } {
  const to = socketAddress(address);
  if (typeof to === "string") return { problem: to };
  let libc;
  try {
    libc = openLibc();
  } catch (error) {
    return { problem: `libc can't be called: ${error instanceof Error ? error.message : String(error)}` };
  }
  const { socket, sendto, close, clock_gettime, __errno_location } = libc.symbols;
  const errno = () => {
    const at = __errno_location();
    return at === null ? 0 : new Deno.UnsafePointerView(at).getInt32();
  };
  const fd = socket(AF_UNIX, DATAGRAM, 0);
  if (fd < 0) return { problem: `a datagram socket can't be made: errno ${errno()}` };
  return {
    send(text) {
      const bytes = encoder.encode(text);
      if (sendto(fd, bytes, BigInt(bytes.length), MSG_NOSIGNAL, to, to.length) >= 0n) return undefined;
      const code = errno();
      return `send to ${address}: ${code === EAGAIN ? "its reader is too slow" : `errno ${code}`}`;
    },
    monotonicUsec() {
      const time = new BigInt64Array(2);
      clock_gettime(CLOCK_MONOTONIC, time);
      return String(time[0]! * 1_000_000n + time[1]! / 1_000n);
    },
    close: () => void close(fd),
  };
}

function openLibc() {
  return Deno.dlopen("libc.so.6", {
    socket: { parameters: ["i32", "i32", "i32"], result: "i32" },
    sendto: { parameters: ["i32", "buffer", "usize", "i32", "buffer", "u32"], result: "isize" },
    close: { parameters: ["i32"], result: "i32" },
    clock_gettime: { parameters: ["i32", "buffer"], result: "i32" },
    __errno_location: { parameters: [], result: "pointer" },
  });
}

/** `struct sockaddr_un` as it is sent to, or what is wrong with the address. */
export function socketAddress(address: string): Uint8Array<ArrayBuffer> | string {
  const bytes = encoder.encode(address);
  const isAbstract = address.startsWith("@");
  const shown = JSON.stringify(address.slice(0, 120));
  if (!isAbstract && !address.startsWith("/")) return `${shown}: expected a path or an abstract name (@...)`;
  if (bytes.length < 2) return `${shown}: expected a name behind ${address}`;
  if (bytes.includes(0)) return `${shown}: it has a zero byte in it`;
  if (bytes.length > LONGEST_BYTES) return `${shown}: too long by ${bytes.length - LONGEST_BYTES} bytes`;
  const struct = new Uint8Array(2 + bytes.length + (isAbstract ? 0 : 1));
  new DataView(struct.buffer).setUint16(0, AF_UNIX, true);
  struct.set(bytes, 2);
  if (isAbstract) struct[2] = 0;
  return struct;
}
