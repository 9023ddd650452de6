import { afterEach, beforeEach, expect, test } from "vitest";
import { askConsole, ownPage, signIn } from "../edge/console-client.ts";
import { type EdgeWorld, edgeAdminToken, startEdge } from "../edge/world.ts";
import { authenticatorCode } from "../support/totp.ts";

// Guesses at operators' names, passwords and codes, by a stranger. They are bounded, tell nothing, and lock no operator out.

const password = "correct horse battery";
const [here, elsewhere] = ["198.51.100.1", "203.0.113.1"] as const;

let edge: EdgeWorld;
let uri: string;
let recoveryCodes: string[];
beforeEach(async () => {
  const settings = { trustProxy: "127.0.0.1", console: { operatorToken: edgeAdminToken } };
  edge = await startEdge({ settings });
  const { totp } = await edge.admin.addOperator({ name: "anna", password });
  uri = totp?.uri ?? "";
  recoveryCodes = totp?.recoveryCodes ?? [];
});
afterEach(() => edge[Symbol.asyncDispose]());

const codeNow = () => authenticatorCode(uri, edge.clock.now());
const ask = (path: string, body: object, address: string = elsewhere) =>
  askConsole(edge.port, `/console/api${path}`, {
    ...{ method: "POST", body },
    headers: { ...ownPage, "x-forwarded-for": address },
  });
/** A try to sign in. Answers status and message. */
const guess = async (body: object, address?: string) => {
  const { status, json } = await ask("/session", { name: "anna", ...body }, address);
  return status === 201 ? "in" : `${status} ${json.error.code} ${json.error.message}`;
};
/** An address of its own for each number. */
const strangers = (n: number) => `192.0.2.${n}`;

test("names that exist and names that do not are answered alike", async () => {
  const told: string[][] = [];
  for (const [at, name] of ["anna", "nobody", "not a name"].entries()) {
    const series: string[] = [];
    for (let i = 0; i < 12; i++) {
      series.push(await guess({ name, password: "x", code: "1" }, strangers(at)));
    }
    told.push(series);
  }
  expect(told[1]).toEqual(told[0]);
  expect(told[2]).toEqual(told[0]);
  expect(told[0]?.[0]).toContain("401 invalid_api_key Name, password or code is wrong");
});

test("an address has ten tries a minute, whatever it tries", async () => {
  const tries = Array.from({ length: 12 }, (_, i) => ({
    ...(i % 2 === 0 ? { name: `anna${i}` } : {}),
    ...(i % 3 === 0 ? { password } : { password: "x" }),
    code: "000000",
  }));
  const told: string[] = [];
  for (const one of tries) told.push(await guess(one));
  expect(told.map((one) => one.slice(0, 3))).toEqual([
    ...Array(10).fill("401"),
    ...Array(2).fill("429"),
  ]);
  // The right proof waits too, at that address alone.
  expect(await guess({ password, code: codeNow() })).toContain("Wait a minute");
  expect(await guess({ password, code: codeNow() }, here)).toBe("in");
});

test("many addresses that guess at a name do not lock out the operator, nor the admin token", async () => {
  expect(await guess({ password, code: codeNow() }, here)).toBe("in");
  let told = "";
  for (let i = 0; i < 40; i++) told = await guess({ password: "x", code: "000000" }, strangers(i));
  expect(told).toContain("429");
  expect(await guess({ password, code: recoveryCodes[0] }, elsewhere)).toContain("429");
  await edge.clock.leap(30_000);
  expect(await guess({ password, code: codeNow() }, here)).toBe("in");
  expect(await signIn(edge.port, edgeAdminToken)).toContain("=");
});

test("who knows the password has ten guesses at a code a day, and the operator has the recovery codes", async () => {
  const isRight = async (code: string, from: number) =>
    (await guess({ password, code }, strangers(from))) === "in";
  for (let i = 0; i < 10; i++) expect(await isRight("000000", i)).toBe(false);
  expect(await isRight(codeNow(), 11)).toBe(false);
  await edge.clock.leap(12 * 3_600_000);
  expect(await isRight(codeNow(), 12)).toBe(false);
  expect(await isRight(recoveryCodes[0] ?? "", 13)).toBe(true);
  expect(await isRight(codeNow(), 13)).toBe(true);
});

test("a stolen link opens nothing of an operator without the other half", async () => {
  const { setUpToken } = await edge.admin.resetOperatorPassword({ name: "anna" });
  const link = { name: "anna", token: setUpToken, password: "the thief's own password" };
  for (let i = 0; i < 12; i++) {
    const { status } = await ask("/set-up", { ...link, code: "000000" }, strangers(i));
    expect(status).not.toBe(200);
  }
  // The thief's guesses used up the day's codes. A recovery code is the operator's way.
  expect((await ask("/set-up", { ...link, code: codeNow() }, here)).status).toBe(400);
  const own = { ...link, password, code: recoveryCodes[0] };
  expect((await ask("/set-up", own, here)).status).toBe(200);
});

test("neither password, code nor link is in the log or the metrics", async () => {
  const { setUpToken } = await edge.admin.addOperator({ name: "ola" });
  await ask("/set-up/begin", { name: "ola", token: setUpToken });
  await guess({ password: "a secret that was mistyped", code: "987654" });
  const code = codeNow();
  await guess({ password, code }, here);
  const told = JSON.stringify(edge.log) + (await edge.metrics.text());
  for (const secret of [password, setUpToken, "mistyped", "987654", ...recoveryCodes]) {
    expect(told).not.toContain(secret);
  }
});
