// Owns: where the API's unix socket is, safely: the directory, a socket of this process's own name, the link to it.
// Must not: remove what another process holds, or listen itself.

/** `sun_path` has 108 bytes, the last one is zero. */
const longestBytes = 107;
const encoder = new TextEncoder();

export interface SocketPlace {
  readonly directory: string;
  /** What clients use: a link, `api.sock`. */
  readonly link: string;
  /** `api`: the sockets beside it are `api-PID.sock`. */
  readonly stem: string;
}

export function socketPlace(link: string): SocketPlace {
  const slash = link.lastIndexOf("/");
  const directory = slash < 0 ? "." : slash === 0 ? "/" : link.slice(0, slash);
  return { directory, link, stem: link.slice(slash + 1).replace(/\.sock$/, "") };
}

/** The n-th name that a process may take; the pid alone is not enough where two pods share the directory. */
export function ownSocket(place: SocketPlace, pid: number, attempt: number): string {
  return `${place.directory}/${place.stem}-${pid}${attempt === 0 ? "" : `-${attempt}`}.sock`;
}

/** Whose socket it is, by its name; undefined where the name is none of epochd's. */
export function ownerOf(place: SocketPlace, socket: string): number | undefined {
  const prefix = `${place.directory}/${place.stem}-`;
  const pid = socket.startsWith(prefix)
    ? /^(\d{1,10})(?:-\d)?\.sock$/.exec(socket.slice(prefix.length))?.[1]
    : undefined;
  return pid === undefined ? undefined : Number(pid);
}

/** What is wrong with the path as a text, before anything is touched. */
export function checkSocketPath(link: string): string | undefined {
  const place = socketPlace(link);
  if (place.stem === "") return "expected the path of a socket, this is a directory";
  const longest = ownSocket(place, 4_194_304, 9);
  const over = encoder.encode(longest).length - longestBytes;
  return over <= 0
    ? undefined
    : `too long for a unix socket by ${over} bytes, with the name of the process in it: expected a shorter directory`;
}

/** Creates the directory (0700) where it is missing; else it must be this user's and writable by nobody else. */
export function prepareDirectory(place: SocketPlace): string | undefined {
  try {
    Deno.mkdirSync(place.directory, { recursive: true, mode: 0o700 });
    const { uid, mode, isDirectory } = Deno.statSync(place.directory);
    if (!isDirectory) return `${place.directory} is not a directory`;
    if (uid !== Deno.uid()) {
      return `${place.directory} belongs to uid ${uid} and epochd runs as ${Deno.uid()}: expected a directory of its own`;
    }
    if (((mode ?? 0) & 0o022) !== 0) {
      const shown = ((mode ?? 0) & 0o7777).toString(8).padStart(4, "0");
      return `${place.directory} has mode ${shown}, others may write to it: expected 0700`;
    }
    return undefined;
  } catch (error) {
    return `${place.directory} can't be used: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Where the link leads, if that is `own` or a socket on which somebody accepts. */
export async function livingHolder(place: SocketPlace, own: string): Promise<string | undefined> {
  if (lstat(place.link)?.isSymlink !== true) return undefined;
  const target = Deno.readLinkSync(place.link);
  const socket = target.startsWith("/") ? target : `${place.directory}/${target}`;
  return socket === own || await isServed(socket) ? socket : undefined;
}

/** Moves the link onto `target`, atomically: at every moment it leads to one supervisor or the other. */
export function moveLink(place: SocketPlace, target: string): string | undefined {
  try {
    const info = lstat(place.link);
    if (info !== undefined && !info.isSymlink) {
      return `${place.link} exists and is no link of epochd: remove it or choose another path`;
    }
    const fresh = `${target}.link`;
    if (lstat(fresh) !== undefined) Deno.removeSync(fresh);
    Deno.symlinkSync(target.slice(target.lastIndexOf("/") + 1), fresh);
    Deno.renameSync(fresh, place.link);
    return undefined;
  } catch (error) {
    return `${place.link} can't be made: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** A socket that was bound this recently may not listen yet, although its owner lives. */
const youngMs = 5_000;

/** Removes sockets whose supervisor has ended: nobody accepts on them. */
export async function removeStale(place: SocketPlace): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const { name, isFile, isDirectory, isSymlink } of Deno.readDirSync(place.directory)) {
    if (isFile || isDirectory || isSymlink || !name.startsWith(`${place.stem}-`) || !name.endsWith(".sock")) continue;
    const path = `${place.directory}/${name}`;
    const born = lstat(path)?.mtime?.getTime() ?? Date.now();
    if (Date.now() - born < youngMs || await accepts(path)) continue;
    try {
      Deno.removeSync(path);
      removed.push(path);
    } catch { /* Another supervisor was faster. */ }
  }
  return removed;
}

async function accepts(path: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path })).close();
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.ConnectionRefused);
  }
}

/** Only what proves that nobody accepts counts as a no: this process may lack file descriptors, or the other be busy. */
async function isServed(path: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path })).close();
    return true;
  } catch (error) {
    const { ConnectionRefused, NotFound, NotADirectory, FilesystemLoop } = Deno.errors;
    return ![ConnectionRefused, NotFound, NotADirectory, FilesystemLoop].some((kind) => error instanceof kind);
  }
}

function lstat(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
