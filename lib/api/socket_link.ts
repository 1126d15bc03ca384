// Owns: whether the API's link leads to this supervisor, from its start to its end. Must not: take it from a living one
// that was not left to it.

import type { ShellFact } from "../observe/shell_fact.ts";
import { livingHolder, moveLink, ownerOf, type SocketPlace } from "./socket_path.ts";

const LOOK_MS = 1_000;

export interface SocketLinkOptions {
  readonly place: SocketPlace;
  /** The socket that this supervisor listens on. */
  readonly socket: string;
  readonly tell: (fact: ShellFact) => void;
  /** Once it resolves, the link may be taken from a living holder, one time: the other supervisor's turn is over. */
  readonly turn?: Promise<void>;
  readonly lookMs?: number;
}

export class SocketLink {
  readonly #options: SocketLinkOptions;
  /** The holder or the problem that was told last. */
  #told: string | undefined;
  #isItsTurn = false;
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SocketLinkOptions) {
    this.#options = options;
  }

  /** Resolves to the problem where there can't be a link at all; else looks on until it is closed. */
  async begin(): Promise<string | undefined> {
    const problem = await this.#look();
    if (problem !== undefined) return problem;
    this.#plan();
    void this.#options.turn?.then(() => {
      this.#isItsTurn = true;
      this.#plan(0);
    });
    return undefined;
  }

  /** The link stays: by now it may be another supervisor's, and looking first would leave a gap. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #plan(waitMs = this.#options.lookMs ?? LOOK_MS): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(async () => {
      const problem = await this.#look();
      if (problem !== undefined && problem !== this.#told) {
        this.#told = problem;
        this.#options.tell({ kind: "api_failed", path: this.#options.place.link, problem });
      }
      this.#plan();
    }, waitMs);
  }

  /** One reading of the link where it leads here; nobody is asked then. */
  async #look(): Promise<string | undefined> {
    const { place, socket, tell } = this.#options;
    let holder: string | undefined;
    try {
      holder = await livingHolder(place, socket);
    } catch (error) {
      return `${place.link} can't be read: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (this.#isClosed) return undefined;
    if (holder === undefined || (this.#isItsTurn && holder !== socket)) {
      const problem = moveLink(place, socket);
      if (problem !== undefined) return problem;
      holder = socket;
    }
    // Whoever takes it after this one's turn began is a later one, and not fought.
    this.#isItsTurn = false;
    if (holder === this.#told) return undefined;
    this.#told = holder;
    if (holder === socket) tell({ kind: "api_listening", path: place.link });
    else tell({ kind: "api_link_held", path: place.link, holder, pid: ownerOf(place, holder), socket });
    return undefined;
  }
}
