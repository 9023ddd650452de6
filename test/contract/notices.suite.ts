import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import type { Database } from "#kit/store/database.ts";
import { createNotices, type Notices } from "../../services/notices/index.ts";
import {
  attemptLeaseMs,
  lookMs,
  maxToldAtOnce,
  overAfterMs,
} from "../../services/notices/limits.ts";
import { type JumpClock, jumpClock } from "../support/jump-clock.ts";
import { until } from "../support/until.ts";
import {
  startWebhookReceiver,
  verified,
  type WebhookReceiver,
} from "../support/webhook-receiver.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const log = createLogger("silent");
/** A mail server that does not exist. */
const nowhere = { host: "127.0.0.1", port: 1, isTls: false, needsTls: false, login: undefined };

/** The rules for notices and alerts, on any store. `open` gives an empty database that can be opened again. */
export function noticeContract(open: () => Promise<() => Database>): void {
  describe("notices", () => {
    let database: () => Database;
    let receiver: WebhookReceiver;
    let jump: JumpClock;
    let clock: JumpClock;
    /** Sleeps that began, and the loops of all replicas, which sleep after each look. */
    let sleeps: number;
    let loops: number;
    let running: Notices[];
    beforeEach(async () => {
      database = await open();
      receiver = await startWebhookReceiver();
      jump = jumpClock();
      clock = {
        ...jump,
        sleep(ms, signal) {
          sleeps++;
          return jump.sleep(ms, signal);
        },
      };
      [sleeps, loops, running] = [0, 0, []];
    });
    afterEach(async () => {
      for (const one of running) await one[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    });

    /** A replica with connections of its own. `away`: sets the stores that it finds away. */
    const replica = async ({ hasMail = false } = {}) => {
      const metrics = createMetrics();
      const up = metrics.gauge("genmesh_store_up", "", ["store"]);
      const notices = createNotices({
        ...{ clock, log, metrics, ids: randomIds, role: "all", database: database() },
        ways: {
          webhook: { url: `${receiver.url}/hook?token=of-the-receiver`, secret },
          mail: hasMail ? { ...nowhere, from: "a@example.com", to: ["b@example.com"] } : undefined,
        },
      });
      running.push(notices);
      await notices.start();
      const own = hasMail ? 4 : 3;
      loops += own;
      const away = (...stores: string[]) => {
        up.reset();
        for (const store of stores) up.of(store).value = 0;
      };
      const leave = async () => {
        running.splice(running.indexOf(notices), 1);
        loops -= own;
        await notices[Symbol.asyncDispose]();
      };
      return { notices, away, leave, metrics };
    };
    const told = () =>
      receiver.received.map(({ body }) =>
        JSON.parse(body).data.notices.map(
          ({ status, subject }: { status: string; subject: string }) => `${status} ${subject}`,
        ),
      );
    /** Moves on by a look. Resolves when all loops have done theirs, or where `isEnough`. */
    const look = async (isEnough = () => false) => {
      const target = sleeps + loops;
      clock.jump(lookMs);
      await until("all loops to look", () => sleeps >= target || isEnough() || undefined);
    };
    /** Moves on until something holds. */
    const passed = async (holds: () => boolean) => {
      while (!holds()) await look(holds);
    };
    /** Moves on for some looks. */
    const looks = async (most = 20) => {
      for (let done = 0; done < most; done++) await look();
    };

    test("two replicas tell a beginning once and an end once, and one that comes later tells nothing", async () => {
      const [one, other] = [await replica(), await replica()];
      for (const { away } of [one, other]) away("blobs");
      await passed(() => receiver.received.length > 0);
      await looks();
      expect(told()).toEqual([["began blobs"]]);
      const [came] = receiver.received;
      expect(came && verified(came, secret)).toMatchObject({
        type: "operator.notices",
        data: { notices: [{ kind: "store_away", severity: "critical" }] },
      });
      // Both end and start again while the store is away.
      await one.leave();
      await other.leave();
      const [third, fourth] = [await replica(), await replica()];
      third.away("blobs");
      fourth.away("blobs");
      await looks();
      expect(told()).toEqual([["began blobs"]]);
      third.away();
      await looks(overAfterMs / lookMs + 5);
      expect(told()).toEqual([["began blobs"]]);
      fourth.away();
      await passed(() => receiver.received.length > 1);
      await looks();
      expect(told()).toEqual([["began blobs"], ["ended blobs"]]);
    });

    test("many notices are several messages of a bounded number", async () => {
      const { away } = await replica();
      away(...Array.from({ length: maxToldAtOnce + 5 }, (_, i) => `disk-${i}`));
      await passed(() => told().flat().length >= maxToldAtOnce + 5);
      expect(told().flat()).toHaveLength(maxToldAtOnce + 5);
      expect(new Set(told().flat()).size).toBe(maxToldAtOnce + 5);
      expect(told().every((one) => one.length <= maxToldAtOnce)).toBe(true);
    });

    test("a receiver that is away holds up no other way, and gets the same message when it is back", async () => {
      receiver.answer = (response) => response.writeHead(503).end();
      const { away, notices, metrics } = await replica({ hasMail: true });
      const wayOf = async (name: string) => {
        const { ways = [] } = await notices.methods.listNotices({} as never, {} as never);
        return ways.find((way) => way.name === name);
      };
      away("blobs");
      await passed(() => receiver.received.length > 2);
      await until("the mail to fail too", async () => ((await wayOf("mail"))?.failures ?? 0) > 0);
      expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
      await until("the third failure", async () => (await wayOf("webhook"))?.failures === 3);
      expect(await wayOf("webhook")).toMatchObject({ lastAnswer: "503" });
      receiver.answer = (response) => response.writeHead(204).end();
      const before = receiver.received.length;
      await passed(() => receiver.received.length > before);
      await until("its end", async () => (await wayOf("webhook"))?.failures === 0);
      expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
      await looks();
      expect(receiver.received).toHaveLength(before + 1);
      const attempts = await metrics.text();
      const outcome = 'genmesh_operator_alerts_total{way="webhook",outcome';
      expect(attempts).toContain(`${outcome}="failed"} ${before}`);
      expect(attempts).toContain(`${outcome}="delivered"} 1`);
    });

    test("an attempt whose process is lost is made by another one, with the same id", async () => {
      receiver.answer = () => {};
      const one = await replica();
      one.away("blobs");
      await passed(() => receiver.received.length > 0);
      await one.leave();
      receiver.answer = (response) => response.writeHead(204).end();
      const other = await replica();
      other.away("blobs");
      clock.jump(attemptLeaseMs);
      await passed(() => receiver.received.length > 1);
      await looks();
      expect(told()).toEqual([["began blobs"], ["began blobs"]]);
      expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
    });

    test("a test is sent by each way at once, and says what each receiver answered", async () => {
      const { notices } = await replica({ hasMail: true });
      const call = { signal: new AbortController().signal } as never;
      const { answers } = await notices.methods.sendTestAlert({} as never, call);
      expect(answers).toEqual([
        { way: "webhook", isDelivered: true, answer: "204" },
        { way: "mail", isDelivered: false, answer: expect.stringContaining("ECONNREFUSED") },
      ]);
      const [came] = receiver.received;
      expect(came && verified(came, secret)).toMatchObject({ type: "operator.test" });
    });
  });
}
