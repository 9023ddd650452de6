// Decides which connections the public port keeps when it is full, and which it closes. It also bounds the small chunks of a
// body, since both happen at the socket before any route.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Connections that a port holds at once. */
export interface ConnectionBounds {
  total: number;
  /**
   * Connections of one address, so that no machine takes them all. For IPv6 an address is a network of 64 bits, all of which a single
   * machine can use.
   */
  each: number;
  /**
   * Is the address a proxy's, shared by many callers? Only the total applies to such addresses, and their connections are not closed
   * for newcomers.
   */
  isShared(address: string | undefined): boolean;
  /**
   * Does the body of a request come so slowly that its connection may be closed like one without a request? Absent: no body is slow.
   */
  isSlow?(request: IncomingMessage): boolean;
}

/** Functions to call when a caller shows a valid key on a connection. */
const hearing = new WeakMap<Socket, (accountId: string) => void>();

/** Functions to call for each request of a connection. */
const requests = new WeakMap<
  Socket,
  (request: IncomingMessage, response: ServerResponse) => void
>();

/** Reports that a caller has shown a valid key of the account on this connection. From then on it counts as the account's. */
export function noteValidKey(socket: Socket, accountId: string): void {
  hearing.get(socket)?.(accountId);
}

/** Functions to call when work of a connection begins that is no HTTP request. Each answers the function to call at its end. */
const works = new WeakMap<Socket, () => () => void>();

/** Reports that a WebSocket has work under way. Its connection counts as busy until the result is called. */
export function noteWork(socket: Socket): () => void {
  return works.get(socket)?.() ?? nothing;
}

function nothing(): void {}

/**
 * Connections of an account above this part of the total may be closed for newcomers. The part is more than a program's pool of
 * connections, and more than all callers of a small account need.
 */
const shareThatStays = 0.01;

/**
 * Connections of a group that are checked for slow bodies when one newcomer comes. The next newcomer checks others. Checking thousands
 * each time would make every newcomer expensive.
 */
const askedForOne = 16;

/** Connections that are judged together: those of an account, or all that have shown no key. */
interface Group {
  size: number;
  /** Connections without a request, longest idle first. */
  idle: Set<Socket>;
  /** Connections with work under way. The one that was checked last comes last. */
  busy: Map<Socket, Set<Work>>;
}

/** A request, or the work of a WebSocket. */
interface Work {
  /** Does it come so slowly that its connection may close? */
  isSlow(): boolean;
}

const workOfSocket: Work["isSlow"] = () => false;

function emptyGroup(): Group {
  return { size: 0, idle: new Set(), busy: new Map() };
}

/**
 * Bounds the connections of a server. A connection above its address's bound is closed at once. Where the total is reached, one
 * connection closes for the newcomer:
 * 1. The one that has been without a request for longest, of those that never showed a valid key. So callers without a key cannot
 *    shut out those with one, from any number of addresses.
 * 2. Else one of the account that has most, so that one account cannot shut out the others. An account with few connections keeps
 *    them.
 * 3. In a group where all have requests or other work, one whose requests all come slowly.
 * 4. Else the newcomer itself.
 */
export function boundConnections(server: Server, bounds: ConnectionBounds): void {
  const connections = new Connections(bounds);
  server.prependListener("connection", (socket: Socket) => connections.came(socket));
  server.prependListener("request", ((request, response) => {
    requests.get(request.socket)?.(request, response);
  }) satisfies RequestListener);
  // TLS speaks over a second socket, and requests and keys belong to that one.
  server.on("secureConnection", (socket: Wrapping) => {
    const { _parent: raw } = socket;
    if (!raw) return;
    hand(hearing, raw, socket);
    hand(requests, raw, socket);
    hand(works, raw, socket);
  });
}

function hand<T>(map: WeakMap<Socket, T>, from: Socket, to: Socket): void {
  const value = map.get(from);
  if (value !== undefined) map.set(to, value);
}

/** The open connections of one server. */
class Connections {
  readonly #total: number;
  readonly #each: number;
  readonly #isShared: ConnectionBounds["isShared"];
  readonly #isSlow: (request: IncomingMessage) => boolean;
  /** Each with the function that frees its places. */
  readonly #open = new Map<Socket, () => void>();
  readonly #withoutKey = emptyGroup();
  readonly #accounts = new Map<string, Group>();
  /** Connections of each network. */
  readonly #counts = new Map<string, number>();
  readonly #few: number;

  constructor({ total, each, isShared, isSlow = () => false }: ConnectionBounds) {
    this.#total = total;
    this.#each = each;
    this.#isShared = isShared;
    this.#isSlow = isSlow;
    this.#few = Math.max(1, total * shareThatStays);
  }

  came(socket: Socket): void {
    const { remoteAddress: address } = socket;
    const shared = address === undefined || this.#isShared(address);
    const counted = shared ? undefined : networkOf(address);
    const count = () => (counted === undefined ? 0 : (this.#counts.get(counted) ?? 0));
    if (count() >= this.#each || !this.#makeRoom()) {
      socket.destroy();
      return;
    }
    // The connection that made room may be of the same address.
    if (counted !== undefined) this.#counts.set(counted, count() + 1);
    // Connections of a proxy belong to many callers, of several accounts.
    const leaveGroup = shared ? undefined : this.#follow(socket);
    const left = () => {
      if (!this.#open.delete(socket)) return;
      leaveGroup?.();
      if (counted === undefined) return;
      const rest = (this.#counts.get(counted) ?? 1) - 1;
      if (rest === 0) this.#counts.delete(counted);
      else this.#counts.set(counted, rest);
    };
    this.#open.set(socket, left);
    socket.once("close", left);
  }

  /** Is there room for a newcomer, if necessary by closing another connection? */
  #makeRoom(): boolean {
    if (this.#open.size < this.#total) return true;
    const least = this.#leastNeeded();
    if (!least) return false;
    // Called here, because the socket's close event comes later.
    this.#open.get(least)?.();
    least.destroy();
    return true;
  }

  /** The connection to close for a newcomer. */
  #leastNeeded(): Socket | undefined {
    const many = [...this.#accounts.values().filter(({ size }) => size > this.#few)];
    many.sort((a, b) => b.size - a.size);
    for (const group of [this.#withoutKey, ...many]) {
      const socket = this.#givesWayIn(group);
      if (socket) return socket;
    }
    return undefined;
  }

  #givesWayIn({ idle, busy }: Group): Socket | undefined {
    const [longest] = idle;
    if (longest) return longest;
    for (const [socket, underWay] of [...busy.entries().take(askedForOne)]) {
      if (underWay.values().every((work) => work.isSlow())) return socket;
      busy.delete(socket);
      busy.set(socket, underWay);
    }
    return undefined;
  }

  /** Keeps a connection in the group that it belongs to. Answers the function that takes it out. */
  #follow(socket: Socket): () => void {
    let group = this.#withoutKey;
    let ownerId: string | undefined;
    const underWay = new Set<Work>();
    const place = () => {
      if (underWay.size === 0) {
        group.busy.delete(socket);
        group.idle.add(socket);
      } else {
        group.idle.delete(socket);
        group.busy.set(socket, underWay);
      }
    };
    const leave = () => {
      group.size--;
      group.idle.delete(socket);
      group.busy.delete(socket);
      if (ownerId !== undefined && group.size === 0) this.#accounts.delete(ownerId);
    };
    const join = (to: Group) => {
      group = to;
      group.size++;
      place();
    };
    join(this.#withoutKey);
    hearing.set(socket, (accountId) => {
      if (accountId === ownerId || !this.#open.has(socket)) return;
      leave();
      const known = this.#accounts.get(accountId) ?? emptyGroup();
      this.#accounts.set(accountId, known);
      ownerId = accountId;
      join(known);
    });
    const begin = (isSlow: Work["isSlow"]) => {
      if (!this.#open.has(socket)) return nothing;
      const work = { isSlow };
      underWay.add(work);
      place();
      return () => {
        underWay.delete(work);
        if (this.#open.has(socket)) place();
      };
    };
    requests.set(socket, (request, response) => {
      response.once(
        "close",
        begin(() => this.#isSlow(request)),
      );
    });
    works.set(socket, () => begin(workOfSocket));
    return leave;
  }
}

/** A socket that speaks TLS, with the socket that carries it. That field is no part of Node's documented interface. */
type Wrapping = Socket & { _parent?: Socket | null };

/** The address or network whose connections count together: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? [] : tail.split(":");
    while (groups.length + after.length < groupsOfIpv6) groups.push("0");
  }
  return `${groups.slice(0, groupsOfIpv6 / 2).join(":")}::/64`;
}

const groupsOfIpv6 = 8;

/**
 * How small the chunks of a body may be. A body may have `spare` chunks of any size: a program that writes a small body piece by piece
 * sends such. Beyond them it may have one chunk for each `meanBytes`. Each chunk costs some microseconds, at any size. With chunks of
 * one byte, a single read of 64 KiB has 10,000.
 */
export const chunkBounds = { spare: 1_024, meanBytes: 256 } as const;

/** Fields that Node keeps of a connection that speaks HTTP/1.1. They are no part of its documented interface. */
interface Parsed {
  parser?: Record<number, unknown> | null;
}

/** The parser's field for the function that it calls for each chunk. */
const onChunk = 3;

/** Calls `refuse` once for a connection whose body has too many small chunks. The rest of that body is ignored. */
export function boundChunks(server: Server, refuse: (socket: Socket) => void): void {
  server.prependListener("request", ((request) => {
    if (request.headers["transfer-encoding"] === undefined) return;
    let left: number = chunkBounds.spare * chunkBounds.meanBytes;
    const push = request.push;
    request.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
      if (chunk === null || left < 0) return push.call(request, chunk, encoding);
      left += Math.min(chunk.length, mostAtOnce) - chunkBounds.meanBytes;
      if (left >= 0) return push.call(request, chunk, encoding);
      stopReading(request);
      refuse(request.socket);
      return false;
    };
  }) satisfies RequestListener);
}

/** No single chunk counts for more, because it comes from one read of the socket. */
const mostAtOnce = 64 * 1024;

/** The bytes that were read already hold thousands of further chunks. The parser goes on through them without calling anything. */
function stopReading({ socket }: IncomingMessage): void {
  socket.pause();
  const { parser } = socket as Parsed;
  if (!parser) return;
  const told = parser[onChunk];
  parser[onChunk] = undefined;
  // Runs before Node's own listener, which keeps the parser for another connection.
  socket.prependOnceListener("close", () => {
    parser[onChunk] = told;
  });
}
