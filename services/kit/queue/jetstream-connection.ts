// Keeps the one connection to NATS, and makes it again whenever it breaks. Publishing and receiving ask it for the link of the
// moment.

import { readFileSync } from "node:fs";
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
} from "@nats-io/transport-node";
import type { Clock } from "#kit/time/clock.ts";
import { isRejection } from "./jetstream-errors.ts";
import type { JetstreamEvents } from "./jetstream-events.ts";
import {
  answerTimeoutMs,
  closeTimeoutMs,
  maxPingsOut,
  pingIntervalMs,
  reconnectPauseMs,
} from "./jetstream-limits.ts";
import type { NatsTarget } from "./jetstream-url.ts";

/** One period of being connected. */
export interface Link {
  nc: NatsConnection;
  /** Aborts when the connection breaks. */
  broken: AbortSignal;
}

/** A connection that is made again whenever that is possible. */
export interface Connection extends AsyncDisposable {
  /** Undefined while there is no connection. */
  link(): Link | undefined;
}

/** How to connect. */
export interface ConnectionContext {
  target: NatsTarget;
  /** Read again at each connection. */
  credsFile: string | undefined;
  clock: Clock;
  events: JetstreamEvents;
  /** Called with each new link. */
  onLink: (link: Link) => void;
}

/**
 * Connects, and connects again whenever the connection breaks, for ever. Resolves after the first attempt, whether the server was there
 * or not. Rejects where the server refuses our credentials, or where their file cannot be read.
 */
export async function openConnection(context: ConnectionContext): Promise<Connection> {
  const { clock, events } = context;
  const options = optionsOf(context);
  const life = new AbortController();
  let nc: NatsConnection | undefined;
  let link: Link | undefined;

  const linked = (connection: NatsConnection): AbortController => {
    const broken = new AbortController();
    link = { nc: connection, broken: broken.signal };
    events.connected();
    context.onLink(link);
    return broken;
  };
  /** Follows a connection until it is closed for good. */
  const follow = async (connection: NatsConnection) => {
    let broken = linked(connection);
    const unlink = (error?: unknown) => {
      link = undefined;
      broken.abort(new Error("the connection to the queue broke"));
      if (!life.signal.aborted) events.away(error);
    };
    for await (const status of connection.status()) {
      if (status.type === "disconnect") unlink();
      // After several refusals the driver reports it several times.
      if (status.type === "reconnect" && !link) broken = linked(connection);
      if (status.type === "error") events.complaint(status.error);
    }
    unlink(await connection.closed());
  };
  const keep = async () => {
    while (!life.signal.aborted) {
      try {
        nc ??= await connect(options);
        if (life.signal.aborted) break;
        await follow(nc);
      } catch (error) {
        events.away(error);
      }
      nc = undefined;
      await clock.sleep(reconnectPauseMs, life.signal).catch(() => {});
    }
    await nc?.close();
  };
  try {
    nc = await connect(options);
  } catch (error) {
    if (isRejection(error)) throw new Error("the server refuses the credentials", { cause: error });
    events.away(error);
  }
  const kept = keep();
  return {
    link: () => link,
    async [Symbol.asyncDispose]() {
      life.abort();
      if (nc) await ended(nc);
      await kept;
    },
  };
}

function optionsOf({ target, credsFile }: ConnectionContext): ConnectionOptions {
  // Read here once, so that a wrong path shows at the start.
  const creds = () => readFileSync(credsFile ?? "");
  if (credsFile !== undefined) creds();
  return {
    servers: target.servers,
    name: "genmesh",
    timeout: answerTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectPauseMs,
    pingInterval: pingIntervalMs,
    maxPingOut: maxPingsOut,
    // While an operator exchanges credentials, refused ones may fit again in a moment.
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
    ...(target.secure ? { tls: {} } : {}),
    ...(target.auth ?? {}),
    ...(credsFile === undefined ? {} : { authenticator: credsAuthenticator(creds) }),
  };
}

/** Lets pending messages go out, if that takes no time. A broken connection just ends. */
async function ended(nc: NatsConnection): Promise<void> {
  const late = new AbortController();
  const limit = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, closeTimeoutMs);
    late.signal.addEventListener("abort", () => clearTimeout(timer));
  });
  await Promise.race([nc.drain().catch(() => {}), limit]);
  late.abort();
  await nc.close().catch(() => {});
}
