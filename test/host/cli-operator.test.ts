import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askConsole, ownPage } from "../edge/console-client.ts";
import { authenticatorCode } from "../support/totp.ts";
import { tempFolder } from "./process.ts";
import { type HostWorld, runCommand, startHostWorld } from "./world.ts";

let world: HostWorld;
beforeAll(async () => {
  world = await startHostWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const genmesh = (...args: string[]) => runCommand(world, args);
const port = () => Number(new URL(world.mesh.baseUrl).port);
const signIn = async (name: string, password: string, code: string) =>
  (
    await askConsole(port(), "/console/api/session", {
      ...{ method: "POST", headers: ownPage, body: { name, password, code } },
    })
  ).status;

/** The JSON object of a call with `--json`, which must succeed. */
async function json(...args: string[]) {
  const { code, out, err } = await genmesh(...args, "--json");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out);
}

test("with a password of a file the second factor goes into a file, and both sign in", async () => {
  await using folder = await tempFolder();
  const [passwordFile, secretFile] = ["password", "secret"].map((one) => join(folder.path, one));
  if (!passwordFile || !secretFile) throw new Error("no paths");
  await writeFile(passwordFile, "correct horse battery\nanother line\n");
  const files = ["--password-file", passwordFile, "--secret-file", secretFile];
  const { code, out } = await genmesh("operator", "add", "Anna", ...files);
  expect(code).toBe(0);
  expect(out).toMatch(/^name +anna\nstate +active\nsecret in +\S+\n$/);
  expect((await stat(secretFile)).mode & 0o777).toBe(0o600);
  const [uri = "", ...recovery] = (await readFile(secretFile, "utf8")).trim().split("\n");
  expect(uri).toMatch(/^otpauth:\/\/totp\/genmesh:anna\?secret=[A-Z2-7]{32}&/);
  expect(recovery).toHaveLength(10);
  expect(await signIn("anna", "correct horse battery", authenticatorCode(uri))).toBe(201);

  // The secret file is kept from being overwritten, before anything is changed.
  const again = await genmesh("operator", "reset-totp", "anna", "--secret-file", secretFile);
  expect(again.code).toBe(1);
  const reset = await json("operator", "reset-totp", "anna");
  expect(reset).toMatchObject({ name: "anna", state: "active", recoveryCodes: 10 });
  expect(reset.totp.recoveryCodes).toHaveLength(10);
  const [first = ""] = reset.totp.recoveryCodes;
  expect(await signIn("anna", "correct horse battery", recovery[0] ?? "")).toBe(401);
  expect(await signIn("anna", "correct horse battery", first)).toBe(201);

  await writeFile(passwordFile, "another horse battery");
  const named = ["--password-file", passwordFile];
  expect((await genmesh("operator", "reset-password", "anna", ...named)).code).toBe(0);
  expect(await signIn("anna", "another horse battery", authenticatorCode(reset.totp.uri))).toBe(
    201,
  );
});

test("without one a link is printed, at the address of the base URL", async () => {
  const { link, ...made } = await json("operator", "add", "ola");
  expect(made).toMatchObject({ name: "ola", state: "pending" });
  const origin = new URL(world.mesh.baseUrl).origin;
  expect(link).toMatch(new RegExp(`^${origin}/console/set-up#name=ola&token=setup_\\w{40}$`));
  const body = Object.fromEntries(new URLSearchParams(new URL(link).hash.slice(1)));
  const begun = await askConsole(port(), "/console/api/set-up/begin", {
    ...{ method: "POST", headers: ownPage, body },
  });
  expect(begun.json).toMatchObject({ needsPassword: true, needsTotp: true });
  expect((await genmesh("operator", "reset-password", "ola")).out).toContain("/console/set-up#");
});

test("are listed, disabled, enabled and removed, with a line of the audit log each", async () => {
  await json("operator", "add", "eve");
  expect((await genmesh("operator", "list")).out).toMatch(/\neve +pending +– +0 /);
  expect((await genmesh("operator", "disable", "eve")).out).toBe("eve is disabled.\n");
  const { operators } = await json("operator", "list");
  expect(operators).toContainEqual(expect.objectContaining({ name: "eve", state: "disabled" }));
  expect((await genmesh("operator", "enable", "eve")).out).toBe("eve is enabled.\n");
  expect((await genmesh("operator", "remove", "eve")).out).toBe("eve is removed.\n");
  const unknown = await genmesh("operator", "disable", "eve");
  expect([unknown.code, unknown.err]).toEqual([1, "genmesh: There is no such operator.\n"]);
  const { actions } = await json("audit", "list", "--limit", "5");
  expect(actions.map((one: { action: string; target: string }) => one.action)).toEqual([
    ...["operator.disable", "operator.remove", "operator.enable", "operator.disable"],
    "operator.add",
  ]);
  expect(actions[4]).toMatchObject({ target: "eve", outcome: "done" });
});

test("a secret file without a password, and an empty password file, are refused before anything is done", async () => {
  await using folder = await tempFolder();
  const empty = join(folder.path, "empty");
  await writeFile(empty, "\n");
  const secret = await genmesh("operator", "add", "bo", "--secret-file", join(folder.path, "s"));
  expect(secret.code).toBe(1);
  expect((await genmesh("operator", "add", "bo", "--password-file", empty)).code).toBe(1);
  const { operators } = await json("operator", "list");
  expect(operators.map((one: { name: string }) => one.name)).not.toContain("bo");
});
