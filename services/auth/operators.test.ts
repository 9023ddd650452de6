import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createAuthWorld } from "../../test/contract/keys.world.ts";
import { authenticatorCode } from "../../test/support/totp.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest();
const password = "correct horse battery";
const stepMs = 30_000;

let world: Awaited<ReturnType<typeof createAuthWorld>>;
let uri: string;
let recoveryCodes: string[];
beforeEach(async () => {
  world = await createAuthWorld();
  const { totp } = await world.admin.addOperator({ name: "Anna", password });
  uri = totp?.uri ?? "";
  recoveryCodes = totp?.recoveryCodes ?? [];
});
afterEach(() => world[Symbol.asyncDispose]());

const codeNow = (steps = 0) => authenticatorCode(uri, world.clock.now() + steps * stepMs);
let sessions = 0;
const signIn = async (given: {
  name?: string;
  password?: string;
  code?: string;
  client?: string;
}) => {
  const { name = "anna", password: word = password, code = codeNow(), client = "desk" } = given;
  const id = `s${sessions++}`;
  const { session } = await world.admin.createNamedSession({
    sessionSha256: sha256(id),
    secretSha256: sha256("admin-token"),
    proof: { password: word, code },
    ...{ name, client },
  });
  return { id, session };
};
const tryToSignIn = (given: Parameters<typeof signIn>[0] = {}) =>
  signIn(given).then(
    () => "in",
    (error) => String(error.message),
  );
const isAlive = (id: string, admin = "admin-token") =>
  world.mesh.lookUpSession({ sessionSha256: sha256(id), adminSha256: sha256(admin) }).then(
    () => true,
    () => false,
  );
const nextCode = () => world.clock.leap(stepMs);
const listed = async () => (await world.admin.listOperators({})).operators[0];

describe("a sign-in by name", () => {
  test("begins a session that names the operator, in any case of the name", async () => {
    const { id, session } = await signIn({ name: "ANNA" });
    expect(session).toMatchObject({ operator: true, operatorName: "anna" });
    expect(await isAlive(id)).toBe(true);
    expect(await isAlive(id, "another-token")).toBe(false);
    expect(await isAlive(id)).toBe(true);
    const { actions } = await world.admin.listActions({});
    expect(actions[0]).toMatchObject({ actor: "operator anna", action: "console.sign_in" });
  });

  test("is refused in one way, whatever is wrong", async () => {
    await world.admin.addOperator({ name: "not-set-up" });
    await world.admin.addOperator({ name: "off", password });
    await world.admin.setOperatorState({ name: "off", disabled: true });
    const told = [
      await tryToSignIn({ password: "wrong horse battery" }),
      await tryToSignIn({ code: "000000" }),
      await tryToSignIn({ code: codeNow(3) }),
      await tryToSignIn({ code: "" }),
      await tryToSignIn({ name: "nobody" }),
      await tryToSignIn({ name: "no name\n" }),
      await tryToSignIn({ name: "not-set-up" }),
      await tryToSignIn({ name: "off" }),
    ];
    expect(new Set(told).size).toBe(1);
    expect(told[0]).toContain("Name, password or code is wrong.");
    expect(await tryToSignIn()).toBe("in");
  });

  test("takes the code before and after the present one, each once", async () => {
    expect(await tryToSignIn({ code: codeNow(-1) })).toBe("in");
    expect(await tryToSignIn({ code: codeNow(-1) })).not.toBe("in");
    expect(await tryToSignIn({ code: codeNow(1) })).toBe("in");
    // The present one is before the one that was used.
    expect(await tryToSignIn({ code: codeNow() })).not.toBe("in");
    await nextCode();
    await nextCode();
    const both = await Promise.all([tryToSignIn(), tryToSignIn({ client: "elsewhere" })]);
    expect(both.filter((one) => one === "in")).toHaveLength(1);
  });

  test("takes each recovery code once, however it is written", async () => {
    const [first = "", second = ""] = recoveryCodes;
    expect(recoveryCodes).toHaveLength(10);
    expect(await tryToSignIn({ code: first })).toBe("in");
    expect(await tryToSignIn({ code: first })).not.toBe("in");
    expect(await tryToSignIn({ code: ` ${second.replaceAll("-", "").toUpperCase()} ` })).toBe("in");
    expect(await listed()).toMatchObject({ recoveryCodes: 8 });
  });
});

describe("guesses", () => {
  test("of codes with the right password end after ten a day; recovery codes are still taken", async () => {
    for (let i = 0; i < 10; i++) await tryToSignIn({ code: "000000", client: `client ${i}` });
    expect(await tryToSignIn()).not.toBe("in");
    expect(await listed()).toMatchObject({ codesRefusedUntil: expect.anything() });
    await world.clock.leap(23 * 3_600_000);
    expect(await tryToSignIn()).not.toBe("in");
    const [recovery = ""] = recoveryCodes;
    expect(await tryToSignIn({ code: recovery })).toBe("in");
    expect(await tryToSignIn()).toBe("in");
  });

  test("of passwords by many addresses are slowed down, and the operator's usual address is not", async () => {
    await signIn({ client: "desk" });
    await nextCode();
    // The same for a name that does not exist.
    for (const name of ["anna", "nobody"]) {
      const told: string[] = [];
      for (let i = 0; i < 31; i++) {
        told.push(await tryToSignIn({ name, password: "no", client: `client ${i}` }));
      }
      expect(told[29]).toContain("is wrong");
      expect(told[30]).toContain("Wait a minute");
    }
    expect(await tryToSignIn({ client: "another" })).toContain("Wait a minute");
    expect(await tryToSignIn({ client: "desk" })).toBe("in");
    await world.clock.leap(60_000);
    expect(await tryToSignIn({ client: "another" })).toBe("in");
  });
});

describe("sessions of an operator end when the operator is", () => {
  test.each<[string, () => Promise<unknown>]>([
    ["disabled", () => world.admin.setOperatorState({ name: "anna", disabled: true })],
    ["removed", () => world.admin.removeOperator({ name: "anna" })],
    ["given a new password", () => world.admin.resetOperatorPassword({ name: "anna", password })],
    ["without a password", () => world.admin.resetOperatorPassword({ name: "anna" })],
    ["given a new second factor", () => world.admin.resetOperatorTotp({ name: "anna" })],
  ])("%s", async (_how, end) => {
    const { id } = await signIn({});
    expect(await isAlive(id)).toBe(true);
    await end();
    expect(await isAlive(id)).toBe(false);
    await nextCode();
  });
});

describe("a session's confirmation", () => {
  const confirm = async (id: string, code: string, word = password) =>
    (
      await world.admin.confirmNamedSession({
        sessionSha256: sha256(id),
        proof: { password: word, code },
        client: "desk",
      })
    ).confirmed;

  test("takes password and a new code, and is written in the session", async () => {
    const used = codeNow();
    const { id } = await signIn({ code: used });
    expect(await confirm(id, used)).toBe(false);
    await nextCode();
    expect(await confirm(id, codeNow(), "wrong horse battery")).toBe(false);
    expect(await confirm(id, codeNow())).toBe(true);
    const asked = { sessionSha256: sha256(id), adminSha256: sha256("admin-token") };
    const { session } = await world.mesh.lookUpSession(asked);
    expect(session?.confirmTime).toBeDefined();
  });

  test("is not given for the admin token, and not with the mesh token", async () => {
    const { id } = await signIn({});
    const byToken = await world.mesh.confirmSession({
      sessionSha256: sha256(id),
      secretSha256: sha256("admin-token"),
      client: "desk",
    });
    expect(byToken.confirmed).toBe(false);
    const asked = { sessionSha256: sha256(id), proof: { password, code: "1" }, client: "desk" };
    await expect(world.mesh.confirmNamedSession(asked)).rejects.toThrow();
  });
});

describe("a link", () => {
  const setUp = (given: object) => world.admin.setUpOperator({ client: "desk", ...given });
  const draft = async (name: string) => (await world.admin.draftTotp({ name })).uri;
  const secretOf = (of: string) => new URL(of).searchParams.get("secret") ?? "";

  test("sets up a new operator once", async () => {
    const { setUpToken, totp } = await world.admin.addOperator({ name: "ola" });
    expect(totp).toBeUndefined();
    const link = { name: "ola", setUpToken };
    expect(await world.admin.getOperatorSetUp(link)).toMatchObject({
      ...{ needsPassword: true, needsTotp: true },
    });
    const own = await draft("ola");
    const code = authenticatorCode(own, world.clock.now());
    const whole = { ...link, password, totpSecret: secretOf(own), code };
    for (const wrong of [{ password: "short" }, { totpSecret: "a" }, { code: "000000" }]) {
      await expect(setUp({ ...whole, ...wrong })).rejects.toThrow();
    }
    await expect(setUp({ ...whole, setUpToken: "setup_x" })).rejects.toThrow("not valid");
    expect((await setUp(whole)).recoveryCodes).toHaveLength(10);
    await expect(setUp(whole)).rejects.toThrow("not valid");
    // The code was used up.
    expect(await tryToSignIn({ name: "ola", code })).not.toBe("in");
    await nextCode();
    const next = authenticatorCode(own, world.clock.now());
    expect(await tryToSignIn({ name: "ola", code: next })).toBe("in");
  });

  test("for a password asks for a present code, and one for a second factor for the password", async () => {
    const forPassword = await world.admin.resetOperatorPassword({ name: "anna" });
    const link = { name: "anna", setUpToken: forPassword.setUpToken };
    expect(await world.admin.getOperatorSetUp(link)).toMatchObject({
      ...{ needsPassword: true, needsTotp: false },
    });
    const newPassword = "another horse battery";
    await expect(setUp({ ...link, password: newPassword, code: "000000" })).rejects.toThrow();
    const { recoveryCodes: none } = await setUp({
      ...link,
      password: newPassword,
      code: codeNow(),
    });
    expect(none).toEqual([]);
    await nextCode();
    expect(await tryToSignIn({ password: newPassword })).toBe("in");

    const { setUpToken } = await world.admin.resetOperatorTotp({ name: "anna", byLink: true });
    const own = await draft("anna");
    const given = { name: "anna", setUpToken, totpSecret: secretOf(own) };
    const code = authenticatorCode(own, world.clock.now());
    await expect(setUp({ ...given, password, code })).rejects.toThrow();
    expect((await setUp({ ...given, password: newPassword, code })).recoveryCodes).toHaveLength(10);
  });

  test("is over after a day, and opens nothing of a disabled operator", async () => {
    const { setUpToken } = await world.admin.addOperator({ name: "ola" });
    const link = { name: "ola", setUpToken };
    await world.admin.setOperatorState({ name: "ola", disabled: true });
    await expect(world.admin.getOperatorSetUp(link)).rejects.toThrow("not valid");
    await world.admin.setOperatorState({ name: "ola", disabled: false });
    await world.admin.getOperatorSetUp(link);
    await world.clock.leap(86_400_000);
    await expect(world.admin.getOperatorSetUp(link)).rejects.toThrow("not valid");
  });
});

test("names are checked, and a name is there once", async () => {
  for (const name of ["", "a b", "-a", "x".repeat(65)]) {
    await expect(world.admin.addOperator({ name, password })).rejects.toThrow();
  }
  await expect(world.admin.addOperator({ name: "ANNA", password })).rejects.toThrow("of this name");
  await expect(world.admin.setOperatorState({ name: "ola", disabled: true })).rejects.toThrow(
    "no such operator",
  );
  await expect(world.mesh.listOperators({})).rejects.toThrow();
});

test("neither log nor store holds a password, a recovery code or a link's token in the clear", async () => {
  const { setUpToken } = await world.admin.addOperator({ name: "ola" });
  const rows = JSON.stringify(world.sqlite.all("SELECT doc FROM auth_operator"));
  for (const secret of [password, setUpToken, ...recoveryCodes]) {
    expect(rows).not.toContain(secret);
    expect(rows).not.toContain(secret.replaceAll("-", ""));
  }
});
