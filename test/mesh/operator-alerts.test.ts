import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { refusedKeys } from "../host/refused-keys.ts";
import { type RunningMesh, startMeshProcesses } from "../support/mesh.ts";
import { until } from "../support/until.ts";
import {
  startWebhookReceiver,
  verified,
  type WebhookReceiver,
} from "../support/webhook-receiver.ts";
import { describeMesh } from "./servers.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

await describeMesh("two processes of media and of text", () => {
  const folder = mkdtempSync(join(tmpdir(), "genmesh-alerts-"));
  let receiver: WebhookReceiver;
  let mesh: RunningMesh;
  beforeAll(async () => {
    receiver = await startWebhookReceiver();
    const catalog = join(folder, "catalog.json");
    writeFileSync(catalog, refusedKeys);
    const env = {
      GENMESH_CATALOG: catalog,
      GENMESH_ALERT_WEBHOOK_URL: `${receiver.url}/hook`,
      GENMESH_ALERT_WEBHOOK_SECRET: secret,
    };
    const replicas = "media=2,text=2";
    const started = await startMeshProcesses({ replicas, dataDir: folder, env, log: [] });
    if (!started) throw new Error("there is no server for one of the stores");
    mesh = started;
  });
  afterAll(async () => {
    await mesh?.[Symbol.asyncDispose]();
    await receiver?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  test("tell the operator once what both of them see, and once that it has ended", {
    timeout: 300_000,
  }, async () => {
    const { secret: key } = await mesh.operator.auth.createAccount({ name: "alerts" });
    const ask = async (model: string) => {
      // Some for each process of text.
      for (let i = 0; i < 8; i++) {
        const response = await fetch(`${mesh.baseUrls[0]}/responses`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ model, input: "Hi" }),
        });
        expect(response.status).toBe(502);
        await response.text();
      }
    };
    // An attempt that the jump of the clocks outlasts is made again, under the same id.
    const told = () =>
      [...new Map(receiver.received.map((one) => [one.id, one])).values()].map(({ body }) =>
        JSON.parse(body)
          .data.notices.map(
            ({ status, subject }: { status: string; subject: string }) => `${status} ${subject}`,
          )
          .sort(),
      );
    await ask("first");
    const [came] = await receiver.took("/hook", 1);
    expect(came && verified(came, secret).type).toBe("operator.notices");
    await ask("second");
    await receiver.took("/hook", 2);
    // Nothing is refused for a long time.
    await mesh.jump(20 * 60_000);
    await until("a third message", () => told().length > 2, { withinMs: 60_000 });
    const keys = ["first, the key in FIRST_KEY", "second, the key in SECOND_KEY"];
    const kind = "upstream_key_refused";
    const ofKeys = (texts: string[]) => texts.filter((text) => text.includes("the key in"));
    expect(told().map(ofKeys)).toEqual([
      [`began ${keys[0]}`],
      [`began ${keys[1]}`],
      keys.map((one) => `ended ${one}`),
    ]);
    await until("nothing to be listed", async () => {
      const { notices } = await mesh.operator.media.listNotices({});
      return notices.every((one) => one.kind !== kind) || undefined;
    });
  });
});
