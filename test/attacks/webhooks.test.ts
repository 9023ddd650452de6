import { afterAll, describe, expect, test } from "vitest";
import { maxAttemptsEach } from "../../services/media/webhooks/limits.ts";
import type { Caller } from "../e2e/caller.ts";
import { startMediaWorld, submit } from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { until } from "../support/until.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";

const receiver = await startWebhookReceiver();
afterAll(() => receiver[Symbol.asyncDispose]());
oneProcessOnly();

const image = (webhookUrl: string) => ({
  ...{ model: "scripted-image", prompt: "a boat", size: "64x64" },
  webhookUrl,
});
const firstOf = (caller: Caller, holds: (webhook: Record<string, unknown>) => boolean) =>
  until("a webhook in the log", async () => {
    const [first] = (await caller.get("/webhooks")).json.data;
    return first && holds(first) ? first : undefined;
  });

describe("by default", async () => {
  const { world, ...rest } = await startMediaWorld();
  afterAll(() => rest[Symbol.asyncDispose]());

  test.each([
    receiver.url,
    receiver.url.replace("127.0.0.1", "localhost"),
    receiver.url.replace("127.0.0.1", "2130706433"),
    receiver.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
    "http://169.254.169.254/latest/meta-data",
    "http://10.0.0.1/",
  ])("%s is not sent to, and the log says why", async (url) => {
    const caller = await world.caller({ credits: 5n });
    await submit(caller, "images", image(url));
    const refused = await firstOf(caller, ({ lastError }) => lastError !== null);
    expect(refused).toMatchObject({ status: "pending", attempts: 1, lastStatus: null });
    expect(refused.lastError).toBe("unsafe");
    expect(receiver.received).toEqual([]);
  });
});

describe("where private addresses are allowed", async () => {
  const { world, ...rest } = await startMediaWorld({
    env: { GENMESH_ALLOW_PRIVATE_REFERENCES: "1" },
  });
  afterAll(() => rest[Symbol.asyncDispose]());

  test("an account whose receiver never answers has its share of attempts, and holds no other account up", async () => {
    const dead = await startWebhookReceiver();
    try {
      // Attempts are broken off after 10 s, and others begun. The number of simultaneous ones counts.
      let [open, mostOpen] = [0, 0];
      dead.answer = (response) => {
        mostOpen = Math.max(mostOpen, ++open);
        response.on("close", () => {
          open--;
        });
      };
      const slow = await world.caller({ credits: 100n });
      const jobs = 3 * maxAttemptsEach;
      for (let i = 0; i < jobs; i++) await submit(slow, "images", image(dead.url));
      await until("the share of attempts", () => dead.received.length >= maxAttemptsEach);
      await until("all of its webhooks", async () => {
        const { data } = (await slow.get("/webhooks?limit=100")).json;
        return data.length === jobs;
      });
      const other = await world.caller({ credits: 5n });
      await submit(other, "images", image(receiver.url));
      await firstOf(other, ({ status }) => status === "delivered");
      // Its own webhooks wait after those that hang. There were never more attempts than its share.
      expect(mostOpen).toBe(maxAttemptsEach);
      const ids = new Set(dead.received.slice(0, maxAttemptsEach).map(({ id }) => id));
      expect(ids.size).toBe(maxAttemptsEach);
    } finally {
      await dead[Symbol.asyncDispose]();
    }
  });
});
