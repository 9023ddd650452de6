import { randomBytes } from "node:crypto";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, describe } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import {
  type JetstreamOptions,
  type JetstreamQueue,
  openJetstreamQueue,
} from "#kit/queue/jetstream.ts";
import { parseNatsUrl } from "#kit/queue/jetstream-url.ts";
import { systemClock } from "#kit/time/clock.ts";
import { findBackend } from "../support/backends.ts";
import { removeStream } from "../support/stores.ts";

/** Queues of some tests on one server. */
export interface JetstreamTests {
  url: string;
  /** A name that no other test has. Its stream is removed after the test. */
  newName(): string;
  /** A client of the test's own, closed after the test. */
  open(name: string, options?: Partial<JetstreamOptions>): Promise<JetstreamQueue>;
  /** The server itself, to read and change its state. */
  manager(): Promise<JetStreamManager>;
}

/** Tests on a NATS server. Without one, a skipped test shows the reason. */
export async function describeJetstream(
  title: string,
  tests: (jetstream: JetstreamTests) => void,
): Promise<void> {
  const { url, note } = await findBackend("nats");
  describe.skipIf(url === undefined)(`${title}${note}`, () => {
    tests(jetstreamTests(url ?? "nats://localhost"));
  });
}

/** A client with this machine's clock and no log. */
export function openTestQueue(
  url: string,
  name: string,
  options: Partial<JetstreamOptions> = {},
): Promise<JetstreamQueue> {
  const [log, metrics] = [createLogger("silent"), createMetrics()];
  return openJetstreamQueue({ url, name, clock: systemClock, log, metrics, ...options });
}

function jetstreamTests(url: string): JetstreamTests {
  const names: string[] = [];
  const queues: JetstreamQueue[] = [];
  let operator: NatsConnection | undefined;
  const manager = async () => {
    operator ??= await connect({ servers: parseNatsUrl(url).servers });
    return jetstreamManager(operator);
  };
  afterEach(async () => {
    for (const queue of queues.splice(0)) await queue[Symbol.asyncDispose]();
    const { streams } = await manager();
    for (const name of names.splice(0)) await removeStream(streams, name);
  });
  afterAll(() => operator?.close());
  return {
    url,
    manager,
    newName() {
      const name = `genmesh-test-${randomBytes(6).toString("hex")}`;
      names.push(name);
      return name;
    },
    async open(name, options) {
      const queue = await openTestQueue(url, name, options);
      queues.push(queue);
      return queue;
    },
  };
}
