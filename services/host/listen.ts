// Counts open requests and connections of a server, so that a port can close when its callers have left. It also explains
// addresses that cannot be used.

import { once } from "node:events";
import {
  createServer,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createNetServer, type Socket } from "node:net";
import { ConfigError } from "./env.ts";

/** Counts the requests of a server that are not answered yet. */
export interface InFlight {
  /** For the gateway, as its `createServer`. `make`: for a server with TLS. Default: a plain one. */
  createServer(options: ServerOptions, handler: RequestListener, make?: MakeServer): Server;
  /** Is no request open? */
  isIdle(): boolean;
  /**
   * From now on every answer is the last one of its connection, unless its head was sent already. The caller connects again, perhaps to
   * another process.
   */
  sendAway(): void;
  /**
   * Resolves when callers have left: no connection is open, or a while has passed since they were first sent away, or `signal` aborts.
   * Closing a connection earlier could lose a request that is under way on it.
   */
  whenLeft(signal: AbortSignal): Promise<void>;
  /** Resolves when no connection is open, or when `signal` aborts. */
  whenGone(signal: AbortSignal): Promise<void>;
  /** Resolves at the first moment without a request, or when `signal` aborts. Sends callers away as well. */
  whenIdle(signal: AbortSignal): Promise<void>;
}

/** Makes a server that does not listen yet. */
export type MakeServer = (options: ServerOptions, handler: RequestListener) => Server;

/**
 * Milliseconds for callers to leave. Callers that look addresses up every 2 s have left by then. Callers with more than one request in
 * this time have had an answer that sent them away.
 */
const leaveMs = 2_500;

/** Makes an {@link InFlight}. */
export function countInFlight(): InFlight {
  const answers = openOnes<ServerResponse>();
  const connections = openOnes<Socket>();
  /** Aborts when callers that were sent away have had their time. */
  let sentAway: AbortSignal | undefined;
  const sayClose = (answer: ServerResponse) => {
    if (!answer.headersSent) answer.setHeader("connection", "close");
  };
  const sendAway = () => {
    if (sentAway) return sentAway;
    sentAway = AbortSignal.timeout(leaveMs);
    for (const answer of answers.all) sayClose(answer);
    return sentAway;
  };
  return {
    createServer(options, handler, make = createServer) {
      const server = make(options, (request, response) => {
        answers.add(response);
        if (sentAway) sayClose(response);
        handler(request, response);
      });
      server.on("connection", connections.add);
      return server;
    },
    isIdle: () => answers.all.size === 0,
    sendAway,
    whenLeft: (signal) => connections.whenNone(AbortSignal.any([signal, sendAway()])),
    whenGone: connections.whenNone,
    whenIdle(signal) {
      sendAway();
      return answers.whenNone(signal);
    },
  };
}

/** The open ones, and the moment when there is none. */
function openOnes<T extends ServerResponse | Socket>() {
  const all = new Set<T>();
  let waiting: (() => void)[] = [];
  const wake = () => {
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  return {
    all: all as ReadonlySet<T>,
    add(one: T): void {
      all.add(one);
      one.once("close", () => {
        all.delete(one);
        if (all.size === 0 && waiting.length > 0) wake();
      });
    },
    /** Resolves also when `signal` aborts. */
    whenNone(signal: AbortSignal): Promise<void> {
      if (all.size === 0 || signal.aborted) return Promise.resolve();
      signal.addEventListener("abort", wake, { once: true });
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** An address to listen on, and the variables that choose it. */
export interface Address {
  host: string;
  port: number;
  portVariable: string;
  /** Absent where the operator cannot choose the host. */
  hostVariable?: string;
}

/** Runs a listen call. An address that cannot be used gives a plain error with the variable that chooses it. */
export async function listening<T>(address: Address, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    throw explained(error, address);
  }
}

/** Rejects as {@link listening} does where the address cannot be used, before anything is made. */
export async function checkAddress(address: Address): Promise<void> {
  const probe = createNetServer();
  await listening(address, async () => {
    probe.listen({ host: address.host, port: address.port });
    await once(probe, "listening");
  });
  probe.close();
  await once(probe, "close");
}

function explained(error: unknown, address: Address): unknown {
  const { host, port, portVariable, hostVariable = portVariable } = address;
  const { code = "" } = error as NodeJS.ErrnoException;
  const where = `${hostInUrl(host)}:${port}`;
  if (code === "EADDRINUSE") {
    return new ConfigError(
      `${portVariable} ${port} is in use by another program (at ${where}): stop it, or choose another port`,
    );
  }
  if (code === "EACCES") {
    return new ConfigError(
      `${portVariable} ${port} needs a privilege that this process lacks: choose one above 1023`,
    );
  }
  if (["EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN", "EINVAL"].includes(code)) {
    return new ConfigError(
      `${hostVariable} must be an address of this machine, or a name of one (it is "${host}": ${code})`,
    );
  }
  return error;
}

/** An address in the form that URLs have. */
export function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
