// Keeps the last response of each conversation on a socket in memory, so that the next request sends only what is new.

import { createBoundedMap } from "#kit/base/bounded-map.ts";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import type { FairShare, Places } from "#kit/share/fair-share.ts";
import type { MissReason, SocketEvents } from "./events.ts";
import { maxDroppedIds, maxKeptBytes } from "./limits.ts";

/** A finished response, as the beginning of the next request's input. */
export interface Chain {
  id: string;
  /** The items of its input and its output, as JSON with commas between them. */
  items: Uint8Array;
  /** The name of the conversation by the beginning of its first request that had input. Undefined: none had any. */
  root: string | undefined;
  /** The ids of the calls in these items. */
  calls: ReadonlySet<string>;
}

/** A chain that a request uses. */
interface Borrowed extends Disposable {
  chain: Chain;
}

/** The room of the first copy. */
const noRoom: Disposable = { [Symbol.dispose]() {} };

/** No items. */
export const noItems: Uint8Array = new Uint8Array(0);

/** A chain with the room that it takes. */
interface Kept extends Chain {
  lane: string;
  room: Places;
}

/** The parts that {@link Chains} need. */
interface ChainsOptions {
  accountId: string;
  /** Shares the bytes of all kept chains. */
  share: Pick<FairShare, "takeFree">;
  events: Pick<SocketEvents, "kept" | "notFound">;
}

/** The conversations of one socket, in memory alone: the latest response of each lane. */
export class Chains {
  readonly #options: ChainsOptions;
  readonly #byLane = new Map<string, Kept>();
  readonly #dropped = createBoundedMap<MissReason>(maxDroppedIds);
  #bytes = 0;
  /** Copies of chains that requests under way have. */
  #copies = 0;
  #isClosed = false;

  constructor(options: ChainsOptions) {
    this.#options = options;
  }

  /**
   * The chain of a response, for a request that copies it, until its disposal. One copy at a time has no need of room: the socket's own
   * bound is that of a body. Copies beside it take room. Refuses with PREVIOUS_RESPONSE_NOT_FOUND, also where there is none.
   */
  borrow(id: string): Borrowed {
    const kept = this.#withId(id);
    if (!kept) return this.#refuse(this.#dropped.get(id) ?? "other_socket");
    const { accountId, share } = this.#options;
    const room = this.#copies > 0 ? share.takeFree(accountId, kept.items.length) : noRoom;
    if (!room) return this.#refuse("room");
    this.#copies++;
    const dispose = () => {
      this.#copies--;
      room[Symbol.dispose]();
    };
    return { chain: kept, [Symbol.dispose]: dispose };
  }

  /** Keeps a chain as the latest of its lane, where there is room. */
  keep(lane: string, chain: Chain): void {
    // An answer may end behind its socket. Room that it takes then would never be given back.
    if (this.#isClosed) return;
    const former = this.#byLane.get(lane);
    if (former) this.#drop(former, "evicted");
    const { length } = chain.items;
    const { accountId, share, events } = this.#options;
    const hasRoom = this.#bytes + length <= maxKeptBytes;
    const room = hasRoom ? share.takeFree(accountId, length) : undefined;
    if (!room) {
      this.#dropped.set(chain.id, "room");
      return;
    }
    this.#byLane.set(lane, { ...chain, lane, room });
    this.#bytes += length;
    events.kept(length);
  }

  /** Forgets a response, because a request that continued it failed. */
  evict(id: string): void {
    const kept = this.#withId(id);
    if (kept) this.#drop(kept, "evicted");
  }

  /** Drops everything, because the socket has closed. */
  close(): void {
    this.#isClosed = true;
    for (const kept of [...this.#byLane.values()]) this.#drop(kept, "evicted");
  }

  #refuse(reason: MissReason): never {
    this.#options.events.notFound(reason);
    throw new RefusalError(ErrorReason.PREVIOUS_RESPONSE_NOT_FOUND, {
      param: "previous_response_id",
    });
  }

  #withId(id: string): Kept | undefined {
    return this.#byLane.values().find((kept) => kept.id === id);
  }

  #drop(kept: Kept, reason: MissReason): void {
    this.#byLane.delete(kept.lane);
    this.#dropped.set(kept.id, reason);
    this.#bytes -= kept.items.length;
    this.#options.events.kept(-kept.items.length);
    kept.room[Symbol.dispose]();
  }
}
