import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";
import { tempFolder, type Variables } from "./process.ts";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
let folder: Awaited<ReturnType<typeof tempFolder>>;
let key: string;
let accountId: string;
beforeAll(async () => {
  world = await startHostWorld();
  folder = await tempFolder();
  const funds = ["--usd-micros", "1000000", "--credits", "100"];
  const made = await genmesh(["account", "create", "--name", "M", ...funds, "--json"]);
  ({ apiKey: key, accountId } = JSON.parse(made.out));
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const genmesh = (args: readonly string[], env: Variables = {}) =>
  runCommand(world, args, { GENMESH_API_KEY: key, ...env });

describe("generate", () => {
  test("image writes the picture and says what it cost", async () => {
    const file = join(folder.path, "fox.png");
    const { code, out, err } = await genmesh(["generate", "image", "a fox", "-o", file]);
    expect({ code, out }).toEqual({ code: 0, out: `${file}: 5 credits\n` });
    expect(err).toMatch(/\[#{30}\] 100 % completed *\n$/);
    expect((await readFile(file)).subarray(1, 4).toString()).toBe("PNG");
  });

  test("several pictures are numbered", async () => {
    const file = join(folder.path, "two.png");
    const { code, out } = await genmesh([
      "generate",
      "image",
      "two",
      "-n",
      "2",
      "-o",
      file,
      "--json",
    ]);
    expect(code).toBe(0);
    const files = [1, 2].map((n) => join(folder.path, `two-${n}.png`));
    expect(JSON.parse(out)).toMatchObject({ files, creditsCharged: 10 });
    for (const one of files) expect((await readFile(one)).length).toBeGreaterThan(1_000);
  });

  test("speech answers at once", async () => {
    const file = join(folder.path, "hello.mp3");
    const { code, out } = await genmesh(["generate", "speech", "Good morning.", "-o", file]);
    expect({ code, out }).toEqual({ code: 0, out: `${file}: 13 characters, $0.000195\n` });
    expect((await readFile(file)).length).toBeGreaterThan(1_000);
  });

  test("without a model it is the default of the kind, of those that the key may use", async () => {
    const funds = ["--usd-micros", "1000", "--credits", "300"];
    const made = await genmesh(["account", "create", "--name", "D", ...funds, "--json"]);
    const account = JSON.parse(made.out).accountId;
    const keyWith = async (...limits: string[]) => {
      const { out } = await genmesh(["key", "create", account, ...limits, "--json"]);
      return { GENMESH_API_KEY: JSON.parse(out).apiKey };
    };
    const file = join(folder.path, "waves.mp4");
    const film = ["generate", "video", "waves", "-o", file, "--resolution", "480p"];
    const narrow = await keyWith("--model", "svcalt-video-1-4");
    const { code, out } = await genmesh(film, narrow);
    expect({ code, out }).toEqual({ code: 0, out: `${file}: 120 credits\n` });
    expect(await genmesh(film, await keyWith("--model", "chat-1"))).toMatchObject({
      code: 1,
      err: "genmesh: the key may use no video model of the catalog\n",
    });
    const scoped = await keyWith("--scope", "videos");
    expect((await genmesh(film, scoped)).err).toMatch(/scope models needs --model: .*denied/);
    const named = await genmesh([...film, "--model", "svc-video-1-5"], scoped);
    expect(named.out).toBe(`${file}: 45 credits\n`);
  });

  test.each([
    ["a model that is none", ["--model", "none"], {}, /model_not_found/],
    ["a wrong key", [], { GENMESH_API_KEY: "wrong-key-wrong-key-wrong" }, /invalid_api_key/],
    ["no key", [], { GENMESH_API_KEY: "" }, /no API key: set GENMESH_API_KEY, or give --api-key/],
    ["no server", ["--base-url", "http://127.0.0.1:1/v1"], {}, /cannot be reached/],
    // At once, because a repeat does not make the text an address.
    [
      "no address",
      ["--base-url", "http://127.0.0.1:99999/v1"],
      {},
      /cannot be reached: Invalid URL/,
    ],
  ])("%s: exit 1 and a line that helps", async (_what, more, env, message) => {
    const file = join(folder.path, "never.png");
    const { code, out, err } = await genmesh(["generate", "image", "x", "-o", file, ...more], env);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^genmesh: .+\n$/);
    expect(err).toMatch(message);
  });

  test("a place that cannot be written is told before anything is charged", async () => {
    // The answer with the earlier speech may have been sent before it was settled.
    const before = await until("its settlement", async () => {
      const balance = await genmesh(["account", "balance", accountId, "--json"]);
      return JSON.parse(balance.out).usdMicros.reserved === 0 ? balance : undefined;
    });
    const file = join(folder.path, "no", "such", "folder.png");
    const { code, err } = await genmesh(["generate", "image", "x", "-o", file]);
    expect(code).toBe(1);
    expect(err).toContain(`${file} cannot be written`);
    const after = await genmesh(["account", "balance", accountId, "--json"]);
    expect(after.out).toBe(before.out);
  });
});

describe("job", () => {
  test("list and show tell state, history and money", async () => {
    const { out } = await genmesh(["job", "list", accountId, "--json"]);
    const { jobs } = JSON.parse(out);
    expect(jobs.length).toBeGreaterThan(0);
    expect(jobs[0]).toMatchObject({ kind: "image", status: "completed", model: "image-1" });
    const table = await genmesh(["job", "list", accountId]);
    expect(table.out).toMatch(/^job +kind +model +status +held +charged +made\njob_/);
    const shown = await genmesh(["job", "show", jobs.at(-1).jobId]);
    expect(shown.out).toMatch(/^status +completed \(100 %\)$/m);
    expect(shown.out).toMatch(/^credits charged +5$/m);
    expect(shown.out).toMatch(/ close +-5 +5$/m);
  });

  test.each([
    [["job", "show", "job_nobody"]],
    [["job", "retry", "job_nobody"]],
    [["hold", "settle", "req_nobody", "--amount", "1"]],
    [["hold", "release", "req_nobody"]],
  ])("%j: exit 1 and a line that helps", async (args) => {
    const { code, out, err } = await genmesh(args);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^genmesh: .*(no such job|not found|no open hold|job_nobody).*\n$/i);
  });

  test("retry takes a failed job only", async () => {
    const { jobs } = JSON.parse((await genmesh(["job", "list", accountId, "--json"])).out);
    const { code, err } = await genmesh(["job", "retry", jobs[0].jobId]);
    expect(code).toBe(1);
    expect(err).toMatch(/^genmesh: .+\n$/);
  });
});

describe("webhook", () => {
  /** An image is made first. */
  const rendered = { withinMs: 60_000, everyMs: 250 };

  test("list tells what became of each, without its address; retry sends one again", {
    timeout: 240_000,
  }, async () => {
    const receiver = await startWebhookReceiver();
    try {
      expect((await genmesh(["webhook", "list", accountId])).out).toBe("no webhooks\n");
      const body = { model: "image-1", prompt: "a fox", webhookUrl: `${receiver.url}/hook` };
      const made = await fetch(`${world.mesh.baseUrl}/images/generations`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect(made.status).toBe(202);
      // The address is this machine's. Webhooks are sent there only where that is allowed.
      const [told] = await until(
        "an attempt",
        async () => {
          const { out } = await genmesh(["webhook", "list", accountId, "--json"]);
          const { webhooks } = JSON.parse(out);
          return webhooks[0]?.lastError ? webhooks : undefined;
        },
        rendered,
      );
      expect(told).toMatchObject({ type: "job.completed", status: "pending", lastError: "unsafe" });
      const table = await genmesh(["webhook", "list", accountId]);
      expect(table.out).toMatch(
        /^webhook +type +status +attempts +answer +made +next attempt\nevt_/,
      );
      expect(`${table.out}${JSON.stringify(told)}`).not.toContain(receiver.url);
      const { webhookId, attempts } = told;
      const retried = await genmesh(["webhook", "retry", webhookId]);
      expect(retried).toMatchObject({ code: 0, out: `${webhookId} is due.\n` });
      const { out: log } = await genmesh(["audit", "list", accountId, "--json"]);
      expect(JSON.parse(log).actions[0]).toMatchObject({
        ...{ action: "webhook.retry", accountId, target: webhookId, outcome: "done" },
      });
      await until(
        "another attempt",
        async () => {
          const { out } = await genmesh(["webhook", "list", accountId, "--json"]);
          return JSON.parse(out).webhooks[0].attempts > attempts;
        },
        rendered,
      );
      expect(receiver.received).toEqual([]);
    } finally {
      await receiver[Symbol.asyncDispose]();
    }
  });

  test.each([
    [["webhook", "list", "acct_nobody"], /no such account/i],
    [["webhook", "retry", "evt_nobody"], /no such webhook/i],
    [["account", "alerts", "acct_nobody"], /no such account/i],
  ])("%j: exit 1 and a line that helps", async (args, words) => {
    const { code, out, err } = await genmesh(args);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^genmesh: .+\n$/);
    expect(err).toMatch(words);
  });
});

test("hold list says so where nothing is held", async () => {
  expect((await genmesh(["hold", "list"])).out).toBe("no open holds\n");
  expect(JSON.parse((await genmesh(["hold", "list", accountId, "--json"])).out)).toEqual({
    holds: [],
    reviews: [],
  });
});
