import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { pino } from "pino";
import { randomIds } from "#kit/base/ids.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { accessInterceptor, tokenInterceptor } from "#kit/rpc/access.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import type { Database } from "#kit/store/database.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import { manualClock } from "#kit/time/clock.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { createAuth } from "../../services/auth/index.ts";

const tokens = { mesh: ["mesh-token"], admin: "admin-token" };

/**
 * A connection that a test can cut, and on which it can hold a method's answers. After a cut, calls fail and open streams become silent.
 */
export function createWire() {
  let whole = true;
  let heldMethod: string | undefined;
  let held: (() => void)[] = [];
  const calls: string[] = [];
  const interceptor: Interceptor = (next) => async (req) => {
    calls.push(req.method.name);
    if (!whole) throw new ConnectError("the wire is cut", Code.Unavailable);
    const res = await next(req);
    if (req.method.name === heldMethod) await new Promise<void>((go) => held.push(go));
    return res.stream ? { ...res, message: onlyWhile(() => whole, res.message) } : res;
  };
  return {
    interceptor,
    cut() {
      whole = false;
    },
    mend() {
      whole = true;
    },
    /** Holds the answers of `method` from now on. */
    hold(method: string) {
      heldMethod = method;
    },
    held: () => held.length,
    release() {
      heldMethod = undefined;
      for (const go of held) go();
      held = [];
    },
    /** The number of calls of a method, including failed ones. */
    calls: (method: string) => calls.filter((name) => name === method).length,
  };
}

async function* onlyWhile<T>(holds: () => boolean, source: AsyncIterable<T>): AsyncIterable<T> {
  for await (const one of source) if (holds()) yield one;
}

/** The real auth service in memory, or on the given database, behind the interceptors of real calls. */
export async function createAuthWorld(given?: Database) {
  const clock = manualClock();
  const ids = randomIds;
  const log = pino({ level: "silent" });
  const metrics = createMetrics();
  const sqlite = openSqlite(":memory:");
  const database: Database = given ?? { kind: "sqlite", sqlite };
  // A hash of the real costs takes a large part of a second.
  const passwordCosts = { cost: 2 ** 10, blockSize: 8, parallelization: 1 };
  const auth = createAuth({ clock, ids, log, metrics, database, passwordCosts });
  await auth.start();
  const wire = createWire();
  const clientWith = (token: string, ...more: Interceptor[]) =>
    createClient(
      AuthService,
      createDirectTransport({
        services: () => auth.rpc,
        clientInterceptors: [tokenInterceptor(token), ...more],
        serverInterceptors: [serverErrorInterceptor({ log, ids }), accessInterceptor(tokens)],
      }),
    );
  return {
    auth,
    clock,
    log,
    metrics,
    sqlite,
    wire,
    /** The operator's client. */
    admin: clientWith("admin-token"),
    /** The gateway's client, over the connection that can be cut. */
    mesh: clientWith("mesh-token", wire.interceptor),
    /** A client with an unknown token. */
    stranger: clientWith("wrong-token"),
    async [Symbol.asyncDispose]() {
      await auth[Symbol.asyncDispose]();
      sqlite[Symbol.dispose]();
    },
  };
}

/** Waits, turn by turn of the event loop, until something is true. No time passes on the test's clock. */
export async function until(holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000; turn += 1) {
    if (holds()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error("it never came to hold");
}
