import { writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { SMTPServer } from "smtp-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { envToConfig } from "../../services/host/config.ts";
import { runOperatorCommand } from "../support/operator-command.ts";
import { until } from "../support/until.ts";
import { type Received, startWebhookReceiver, verified } from "../support/webhook-receiver.ts";
import { type RunningMesh, runHost, startRunning, tempFolder } from "./process.ts";
import { refusedKeys } from "./refused-keys.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const password = "pass word/ü";
const adminToken = "operator-token-of-the-alerts";

interface Mail {
  from: string;
  to: string[];
  source: string;
}

/** A mail server that takes one login. */
async function startMailServer() {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    // Plain text on the loopback.
    ...{ disabledCommands: ["STARTTLS"], allowInsecureAuth: true },
    onAuth({ username, password: given }, _session, done) {
      if (username === "alerts@example.com" && given === password) done(null, { user: username });
      else done(new Error("Invalid login"));
    },
    onData(stream, { envelope }, done) {
      text(stream).then((source) => {
        const from = envelope.mailFrom === false ? "" : envelope.mailFrom.address;
        mails.push({ from, to: envelope.rcptTo.map(({ address }) => address), source });
        done();
      }, done);
    },
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.server.address() as AddressInfo;
  const urlWith = (pass: string) =>
    `smtp://alerts%40example.com:${encodeURIComponent(pass)}@127.0.0.1:${port}`;
  return {
    mails,
    urlWith,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

describe("an operator's alerts", () => {
  const stack = new AsyncDisposableStack();
  let receiver: Awaited<ReturnType<typeof startWebhookReceiver>>;
  let mail: Awaited<ReturnType<typeof startMailServer>>;
  let folder: string;
  let env: Record<string, string>;
  beforeAll(async () => {
    receiver = stack.use(await startWebhookReceiver());
    mail = stack.use(await startMailServer());
    folder = stack.use(await tempFolder()).path;
    await writeFile(join(folder, "catalog.yaml"), refusedKeys);
    await writeFile(join(folder, "secret"), `${secret}\n`);
    env = {
      GENMESH_DATA_DIR: join(folder, "data"),
      GENMESH_CATALOG: join(folder, "catalog.yaml"),
      GENMESH_ADMIN_TOKEN: adminToken,
      GENMESH_ALERT_WEBHOOK_URL: `${receiver.url}/hook?token=of-the-receiver`,
      GENMESH_ALERT_WEBHOOK_SECRET_FILE: join(folder, "secret"),
      GENMESH_ALERT_SMTP_URL: mail.urlWith(password),
      GENMESH_ALERT_MAIL_FROM: "alerts@example.com",
      GENMESH_ALERT_MAIL_TO: "one@example.com, two@example.com",
    };
  });
  afterAll(() => stack.disposeAsync());

  const ask = async ({ baseUrl }: RunningMesh, key: string, model: string) => {
    const response = await fetch(`${baseUrl}/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, input: "a secret prompt" }),
    });
    expect(response.status).toBe(502);
    await response.text();
  };
  const command = ({ grpcAddress }: RunningMesh, ...args: string[]) =>
    runOperatorCommand([...args, "--server", grpcAddress], { GENMESH_ADMIN_TOKEN: adminToken });

  test("tell of a refused key once, signed and by mail, also after kill -9 and a start", async () => {
    let key = "";
    {
      await using mesh = await startRunning(env);
      key = mesh.bannerKey ?? "";
      await ask(mesh, key, "first");
      const [came] = (await receiver.took("/hook?token=of-the-receiver", 1)) as [Received];
      const said = verified(came, secret);
      expect(said).toEqual({
        type: "operator.notices",
        timestamp: expect.stringMatching(/Z$/),
        data: {
          notices: [
            {
              id: expect.stringMatching(/^ntc_[0-9a-f]{24}$/),
              ...{ status: "began", severity: "critical", kind: "upstream_key_refused" },
              subject: "first, the key in FIRST_KEY",
              text: "An upstream does not accept a key: first, the key in FIRST_KEY.",
              beganAt: expect.stringMatching(/Z$/),
              runbook: "docs/operations.md#genmeshupstreamkeyrefused",
            },
          ],
        },
      });
      const first = await until("a mail", () => mail.mails[0], { withinMs: 60_000 });
      expect(first).toMatchObject({
        from: "alerts@example.com",
        to: ["one@example.com", "two@example.com"],
      });
      expect(first.source).toMatch(/^Subject: \[genmesh\] began: An upstream does not accept/m);
      expect(first.source).toMatch(/^Message-ID: <evt_[0-9a-f]{24}@example.com>/im);
      for (const leak of ["a secret prompt", key, "of-the-receiver", secret]) {
        expect(first.source + came.body).not.toContain(leak);
      }
      const listed = await command(mesh, "alert", "list", "--json");
      expect(JSON.parse(listed.out)).toMatchObject({
        notices: [{ kind: "upstream_key_refused", alert: "GenmeshUpstreamKeyRefused" }],
        ways: [
          { way: "webhook", failures: 0, lastAnswer: "204" },
          { way: "mail", failures: 0, lastAnswer: "250" },
        ],
      });
      mesh.kill("SIGKILL");
      await mesh.ended;
      for (const secretPart of ["of-the-receiver", password, encodeURIComponent(password)]) {
        expect(mesh.stdout() + mesh.stderr()).not.toContain(secretPart);
      }
    }
    await using again = await startRunning(env);
    await ask(again, key, "first");
    await ask(again, key, "second");
    // Both are seen by the same look, and only the second one is new.
    const [, next] = await receiver.took("/hook?token=of-the-receiver", 2);
    await until("a second mail", () => mail.mails[1], { withinMs: 60_000 });
    expect(JSON.parse(next?.body ?? "").data.notices).toMatchObject([
      { status: "began", subject: "second, the key in SECOND_KEY" },
    ]);
    const answered = await command(again, "alert", "test");
    expect(answered).toMatchObject({ code: 0, err: "" });
    expect(answered.out).toMatch(/webhook +yes +204/);
    expect(answered.out).toMatch(/mail +yes +250/);
    expect(receiver.received.map(({ body }) => JSON.parse(body).type)).toEqual([
      ...["operator.notices", "operator.notices", "operator.test"],
    ]);
    expect(mail.mails).toHaveLength(3);
    expect(mail.mails[2]?.source).toContain("This is a test. An operator asked for it.");
  });

  test("of a test say what a receiver did not like, and never the password", async () => {
    const data = join(folder, "other");
    const wrong = { ...env, GENMESH_DATA_DIR: data, GENMESH_ALERT_SMTP_URL: mail.urlWith("wrong") };
    await using mesh = await startRunning(wrong);
    receiver.answer = (response) => response.writeHead(500).end();
    const { code, out } = await command(mesh, "alert", "test", "--json");
    receiver.answer = (response) => response.writeHead(204).end();
    expect(code).toBe(1);
    expect(JSON.parse(out).answers).toEqual([
      { way: "webhook", isDelivered: false, answer: "500" },
      { way: "mail", isDelivered: false, answer: expect.stringMatching(/Invalid login.*535/) },
    ]);
    expect(mesh.stdout() + mesh.stderr()).not.toContain("wrong");
  });

  test("a bad variable stops the start and is named", async () => {
    const { code, stderr } = await runHost({ ...env, GENMESH_ALERT_MAIL_TO: "nobody" });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        "genmesh: GENMESH_ALERT_MAIL_TO must be 1 to 20 mail addresses, separated by commas\n",
    });
  });
});

describe("the variables of alerts", () => {
  const url = "https://hooks.example.com/x";
  const mail = { GENMESH_ALERT_MAIL_FROM: "a@example.com", GENMESH_ALERT_MAIL_TO: "b@example.com" };
  const alertsOf = (env: Record<string, string>) => envToConfig(env).alerts;

  test.each([
    [{ GENMESH_ALERT_WEBHOOK_URL: "ftp://x.example" }, /^GENMESH_ALERT_WEBHOOK_URL must be/],
    [{ GENMESH_ALERT_WEBHOOK_URL: "http://u:p@x.example" }, /^GENMESH_ALERT_WEBHOOK_URL must be/],
    [{ GENMESH_ALERT_WEBHOOK_URL: "http://127.0.0.1:6379" }, /^GENMESH_ALERT_WEBHOOK_URL must be/],
    [{ GENMESH_ALERT_WEBHOOK_URL: url }, /^GENMESH_ALERT_WEBHOOK_SECRET must be whsec_/],
    [{ GENMESH_ALERT_WEBHOOK_SECRET: secret }, /^GENMESH_ALERT_WEBHOOK_URL must be set beside/],
    [
      { GENMESH_ALERT_WEBHOOK_URL: url, GENMESH_ALERT_WEBHOOK_SECRET: "whsec_c2hvcnQ=" },
      /^GENMESH_ALERT_WEBHOOK_SECRET must be whsec_/,
    ],
    [
      { GENMESH_ALERT_WEBHOOK_URL: url, GENMESH_ALERT_WEBHOOK_SECRET_FILE: "/no/such" },
      /^GENMESH_ALERT_WEBHOOK_SECRET_FILE must be a file that can be read/,
    ],
    [
      {
        GENMESH_ALERT_WEBHOOK_URL: url,
        GENMESH_ALERT_WEBHOOK_SECRET: secret,
        GENMESH_ALERT_WEBHOOK_SECRET_FILE: "/no/such",
      },
      /^GENMESH_ALERT_WEBHOOK_SECRET_FILE must not be set beside/,
    ],
    [mail, /^GENMESH_ALERT_SMTP_URL must be set beside GENMESH_ALERT_MAIL_FROM/],
    [{ ...mail, GENMESH_ALERT_SMTP_URL: "http://h:25" }, /^GENMESH_ALERT_SMTP_URL must be smtp:/],
    [{ ...mail, GENMESH_ALERT_SMTP_URL: "smtp://u@h:25" }, /^GENMESH_ALERT_SMTP_URL must be smtp:/],
    [{ ...mail, GENMESH_ALERT_SMTP_URL: "smtp://h/?x=1" }, /^GENMESH_ALERT_SMTP_URL must be smtp:/],
    [
      { ...mail, GENMESH_ALERT_SMTP_URL: "smtp://u:%zz@h" },
      /^GENMESH_ALERT_SMTP_URL must be smtp:/,
    ],
    [
      { GENMESH_ALERT_SMTP_URL: "smtp://h", GENMESH_ALERT_MAIL_TO: "b@example.com" },
      /^GENMESH_ALERT_MAIL_FROM must be a mail address/,
    ],
    [
      { ...mail, GENMESH_ALERT_SMTP_URL: "smtp://h", GENMESH_ALERT_MAIL_FROM: "a@b\nBcc: c@d" },
      /^GENMESH_ALERT_MAIL_FROM must be a mail address/,
    ],
  ])("%j are refused by their name", (env, fault) => {
    expect(() => alertsOf(env as Record<string, string>)).toThrow(fault);
  });

  test("a mail server gets its port, TLS and login from the URL", () => {
    const serverOf = (smtp: string) => alertsOf({ ...mail, GENMESH_ALERT_SMTP_URL: smtp }).mail;
    const login = { user: "a@b", pass: "p:w" };
    expect(serverOf("smtps://a%40b:p%3Aw@mail.example.com")).toMatchObject({
      ...{ host: "mail.example.com", port: 465, isTls: true, needsTls: false, login },
    });
    // A password never goes over the network in plain text.
    expect(serverOf("smtp://a%40b:p%3Aw@mail.example.com")).toMatchObject({
      ...{ port: 587, isTls: false, needsTls: true },
    });
    expect(serverOf("smtp://[::1]:2525")).toMatchObject({
      ...{ host: "::1", port: 2525, needsTls: false, login: undefined },
    });
  });
});
