// The bounds of sockets, each with its reason: how many there are, what one may ask for at once, and how long it lives.

import { defaultMaxBytesInFlight } from "../limits.ts";

const kib = 1024;
const mib = 1024 * kib;

/**
 * Sockets that are open at once: `most` in all, and `ofKey` of one key. An agent has one, and a team's key is used by many agents.
 * `inFlight`: responses that one socket has under way. Clients that name no lanes expect one after the other.
 */
export const socketBounds = { most: 4_096, ofKey: 64, inFlight: 1 } as const;

/** Sockets of one account, of `most` in all: half of them, so that no account shuts out the others. */
export function mostOfAccount(most: number): number {
  return Math.ceil(most / 2);
}

/** Requests that wait on a socket, beside those under way. Clients send one after the other, and few lanes. */
export const maxWaiting = 32;
/** Lanes of a socket that have a name: OpenAI's number. */
export const maxLanes = 32;
/** A lane's name, by OpenAI's rule. */
export const laneName = /^[A-Za-z0-9_.-]{1,256}$/;

/** Milliseconds after which a socket takes no new request: OpenAI's hour. Clients open another one then. */
export const socketLifeMs = 60 * 60_000;
/** Milliseconds between two pings. Common proxies close a connection that is silent for 60 s. */
export const pingMs = 15_000;
/** Pings in a row without an answer after which the caller has left. */
export const maxLostPings = 2;
/** Milliseconds between two searches for sockets that need a ping, or are too old. */
export const socketSweepMs = 1_000;

/** Bytes that may wait for a caller who reads slowly. While more wait, the answer is not read from the text service. */
export const maxUnreadBytes = 1 * mib;
/** Bytes of an unfinished message for which no room is taken yet: a usual read of the connection. */
export const freeMessageBytes = 64 * kib;
/** Bytes for which an unfinished message takes room at once. */
export const messageStepBytes = 1 * mib;

/** Bytes of kept conversations on one socket: one body of the largest size. */
export const maxKeptBytes = 64 * mib;
/**
 * Bytes of kept conversations in all: half the room of bodies. They have separate room, because a conversation is kept for up to an
 * hour, and bodies must not wait for that long.
 */
export const keptBytesInAll = defaultMaxBytesInFlight / 2;
/** Ids of responses that a socket remembers after it has dropped them, so that the metric can name the reason. */
export const maxDroppedIds = 64;

/** Milliseconds over which a process that stops closes its idle sockets, so that their callers do not all come back at once. */
export const drainSpreadMs = 2_000;
/** Milliseconds for a caller to answer a closing frame. Then the connection ends. */
export const closeTimeoutMs = 2_000;
