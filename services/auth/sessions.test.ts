import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ActionOutcome } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { createAuthWorld } from "../../test/contract/keys.world.ts";
import { until } from "../../test/support/until.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest();
const minuteMs = 60_000;

let world: Awaited<ReturnType<typeof createAuthWorld>>;
let secret: string;
let keyId: string;
let accountId: string;
beforeEach(async () => {
  world = await createAuthWorld();
  const made = await world.admin.createAccount({ name: "a" });
  secret = made.secret;
  keyId = made.key?.keyId ?? "";
  accountId = made.account?.accountId ?? "";
});
afterEach(() => world[Symbol.asyncDispose]());

const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => "answered",
    (error) => String(error.message),
  );
const signIn = (id: string, by = secret, client = "somewhere") =>
  world.mesh.createSession({ sessionSha256: sha256(id), secretSha256: sha256(by), client });
const lookUp = (id: string, admin = "") =>
  world.mesh.lookUpSession({
    sessionSha256: sha256(id),
    adminSha256: admin === "" ? new Uint8Array() : sha256(admin),
  });
const isAlive = (id: string, admin = "") =>
  lookUp(id, admin).then(
    () => true,
    () => false,
  );

describe("a session of a key", () => {
  test("is found with the key as it is now", async () => {
    const { session, key } = await signIn("s1");
    expect(session).toMatchObject({ operator: false });
    expect(key).toMatchObject({ keyId, accountId });
    const found = await lookUp("s1");
    expect(found).toMatchObject({ key: { keyId }, accountRequestsPerMinute: 6_000 });
    await world.admin.setAccountState({ accountId, suspended: true });
    expect(await lookUp("s1")).toMatchObject({ accountSuspended: true });
  });

  test("ends after half an hour without use", async () => {
    await signIn("s1");
    for (let i = 0; i < 4; i++) {
      await world.clock.leap(29 * minuteMs);
      expect(await isAlive("s1")).toBe(true);
    }
    await world.clock.leap(30 * minuteMs);
    expect(await isAlive("s1")).toBe(false);
  });

  test("ends after eight hours however much it is used", async () => {
    await signIn("s1");
    for (let min = 0; min < 8 * 60 - 20; min += 20) {
      await world.clock.leap(20 * minuteMs);
      expect(await isAlive("s1")).toBe(true);
    }
    await world.clock.leap(20 * minuteMs);
    expect(await isAlive("s1")).toBe(false);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["revoked", () => world.admin.revokeKey({ keyId })],
    ["rotated, grace or not", () => world.admin.rotateKey({ keyId, graceSeconds: 3_600 })],
  ])("ends with the next look-up once its key is %s", async (_how, end) => {
    await signIn("s1");
    await end();
    expect(await isAlive("s1")).toBe(false);
  });

  test("ends with its key's expiry", async () => {
    const made = await world.admin.createKey({
      accountId,
      expireTime: { seconds: BigInt(Math.floor(world.clock.now() / 1_000) + 600), nanos: 0 },
    });
    await signIn("s1", made.secret);
    await world.clock.leap(9 * minuteMs);
    expect(await isAlive("s1")).toBe(true);
    await world.clock.leap(2 * minuteMs);
    expect(await isAlive("s1")).toBe(false);
  });

  test("a former secret in its grace opens none", async () => {
    await world.admin.rotateKey({ keyId, graceSeconds: 3_600 });
    await expect(signIn("s1")).rejects.toThrow();
  });

  test("ends when its owner signs out, and a repeat is no fault", async () => {
    await signIn("s1");
    await signIn("s2");
    await world.mesh.endSession({ sessionSha256: sha256("s1") });
    await world.mesh.endSession({ sessionSha256: sha256("s1") });
    expect(await isAlive("s1")).toBe(false);
    expect(await isAlive("s2")).toBe(true);
  });

  test("is confirmed by its own secret alone", async () => {
    await signIn("s1");
    const other = await world.admin.createKey({ accountId });
    const confirm = async (by: string) =>
      (
        await world.mesh.confirmSession({
          sessionSha256: sha256("s1"),
          secretSha256: sha256(by),
          client: "somewhere",
        })
      ).confirmed;
    expect(await confirm(secret)).toBe(true);
    expect(await confirm(other.secret)).toBe(false);
  });
});

describe("an operator's session", () => {
  const begin = (client: typeof world.admin, id: string) =>
    client.createOperatorSession({
      sessionSha256: sha256(id),
      secretSha256: sha256("admin-token"),
      client: "somewhere",
    });

  test("takes the admin token to begin", async () => {
    await expect(begin(world.mesh, "s1")).rejects.toThrow();
    expect((await begin(world.admin, "s1")).session).toMatchObject({ operator: true });
  });

  test("is unknown to a gateway without the token, and over with another token", async () => {
    await begin(world.admin, "s1");
    expect(await isAlive("s1")).toBe(false);
    expect(await isAlive("s1", "another-token")).toBe(false);
    // A gateway that must not serve the session does not end it either.
    expect(await isAlive("s1", "admin-token")).toBe(true);
    expect((await lookUp("s1", "admin-token")).key).toBeUndefined();
  });

  test("ends after a quarter of an hour without use, and after four hours", async () => {
    await begin(world.admin, "idle");
    await world.clock.leap(15 * minuteMs);
    expect(await isAlive("idle", "admin-token")).toBe(false);
    await begin(world.admin, "used");
    for (let min = 0; min < 4 * 60 - 10; min += 10) {
      await world.clock.leap(10 * minuteMs);
      expect(await isAlive("used", "admin-token")).toBe(true);
    }
    await world.clock.leap(10 * minuteMs);
    expect(await isAlive("used", "admin-token")).toBe(false);
  });
});

describe("failed sign-ins", () => {
  const wrong = "x".repeat(30);
  const fail = async (client: string, times: number) => {
    const told = [];
    for (let i = 0; i < times; i++) told.push(await reasonOf(signIn(`f${i}`, wrong, client)));
    return told;
  };

  test("ten a minute of one client, then also the right secret waits", async () => {
    const told = await fail("a", 12);
    expect(new Set(told.slice(0, 10)).size).toBe(1);
    expect(told[10]).not.toBe(told[0]);
    expect(told[11]).toBe(told[10]);
    expect(await reasonOf(signIn("s1", secret, "a"))).toBe(told[10]);
    expect(await reasonOf(signIn("s2", secret, "b"))).toBe("answered");
    await world.clock.leap(minuteMs);
    expect(await reasonOf(signIn("s3", secret, "a"))).toBe("answered");
  });

  test("right ones are not counted", async () => {
    for (let i = 0; i < 30; i++) await signIn(`s${i}`, secret, "a");
    expect(await reasonOf(signIn("s", secret, "a"))).toBe("answered");
  });

  test("that come all at once are bounded too", async () => {
    const told = await Promise.all(
      Array.from({ length: 40 }, (_, i) => reasonOf(signIn(`f${i}`, wrong, "a"))),
    );
    const [first] = told;
    expect(told.filter((one) => one === first)).toHaveLength(10);
  });

  describe("beyond the ceiling over all clients", () => {
    let told: string[];
    beforeEach(async () => {
      await signIn("before", secret, "at the desk");
      told = [];
      for (let i = 0; i < 601; i++) told.push(await reasonOf(signIn("f", wrong, `client ${i}`)));
    });
    const confirm = (by: string) =>
      world.mesh.confirmSession({
        sessionSha256: sha256("before"),
        secretSha256: sha256(by),
        client: "at the desk",
      });

    test("wrong secrets wait, whichever client brings them", async () => {
      expect(new Set(told.slice(0, 600)).size).toBe(1);
      expect(told[600]).not.toBe(told[0]);
      expect(await reasonOf(signIn("f", wrong, "another"))).toBe(told[600]);
      expect(await reasonOf(confirm(wrong))).toBe(told[600]);
    });

    test("right secrets are let in: at a sign-in, an operator's, and where one is asked for again", async () => {
      expect(await reasonOf(signIn("s1", secret, "another"))).toBe("answered");
      const operator = world.admin.createOperatorSession({
        sessionSha256: sha256("s2"),
        secretSha256: sha256("admin-token"),
        client: "another",
      });
      expect(await reasonOf(operator)).toBe("answered");
      expect(await confirm(secret)).toMatchObject({ confirmed: true });
    });

    test("ten failures of one client still make it wait, with the right secret too", async () => {
      expect(new Set(await fail("a", 10))).toEqual(new Set([told[600]]));
      expect(await reasonOf(signIn("s1", secret, "a"))).toBe(told[600]);
      expect(await reasonOf(signIn("s2", secret, "b"))).toBe("answered");
    });

    test("it is over a minute later", async () => {
      await world.clock.leap(minuteMs);
      expect(await reasonOf(signIn("f", wrong, "another"))).toBe(told[0]);
    });
  });

  test("wrong answers to the secret that is asked for again count with them", async () => {
    await signIn("s1", secret, "a");
    for (let i = 0; i < 10; i++) {
      await world.mesh.confirmSession({
        sessionSha256: sha256("s1"),
        secretSha256: sha256(`${wrong}${i}`),
        client: "a",
      });
    }
    expect(await reasonOf(signIn("s2", secret, "a"))).not.toBe("answered");
  });
});

describe("the operators' audit log", () => {
  const wrong = "x".repeat(30);
  const begin = (id: string, identity?: { issuer: string; subject: string; confirmed: boolean }) =>
    world.admin.createOperatorSession({
      sessionSha256: sha256(id),
      secretSha256: sha256("admin-token"),
      ...(identity ? { identity } : { client: "somewhere" }),
    });
  const end = (id: string) => world.mesh.endSession({ sessionSha256: sha256(id) });
  const lines = async () => {
    const { actions } = await world.admin.listActions({});
    return actions
      .map(({ action, actor, outcome, details }) => ({ action, actor, outcome, details }))
      .reverse();
  };
  /** Lines of the same millisecond have no order. */
  const later = () => world.clock.advance(1);
  /** The line is written when the minute is over, and no call waits for it. */
  const afterMinute = async (count: number) => {
    await world.clock.advance(minuteMs);
    return until("the lines", async () => {
      const written = await lines();
      return written.length >= count ? written : undefined;
    });
  };
  const guess = (client: string) =>
    reasonOf(
      world.mesh.createSession({
        ...{ sessionSha256: sha256("f"), secretSha256: sha256(wrong), client },
        amongOperators: true,
      }),
    );

  test("has each sign-in and sign-out of an operator, and none of a key", async () => {
    await signIn("key");
    await end("key");
    await begin("s1");
    await later();
    await end("s1");
    await end("s1");
    await later();
    await begin("s2", { issuer: "https://id.example", subject: "anna", confirmed: true });
    const done = { outcome: ActionOutcome.DONE, details: "{}" };
    expect(await lines()).toEqual([
      { ...done, action: "console.sign_in", actor: "admin token" },
      { ...done, action: "console.sign_out", actor: "admin token" },
      { ...done, action: "console.sign_in", actor: "https://id.example anna" },
    ]);
  });

  test("has failures where operators sign in: the first at once, those of the minute together", async () => {
    await reasonOf(signIn("f", wrong));
    expect(await lines()).toEqual([]);
    for (const client of ["a", "a", "b", "c"]) await guess(client);
    const refused = { action: "console.sign_in", actor: "unknown", outcome: ActionOutcome.REFUSED };
    const line = (failures: number, clients: number) => ({
      ...refused,
      details: JSON.stringify({ failures, clients }),
    });
    expect(await lines()).toEqual([line(1, 1)]);
    expect(await afterMinute(2)).toEqual([line(1, 1), line(3, 3)]);
    await later();
    for (let i = 0; i < 500; i++) await guess(`client ${i}`);
    expect(await afterMinute(4)).toHaveLength(4);
    expect((await lines()).at(-1)).toEqual(line(499, 499));
    // A minute without failures has no line.
    await world.clock.advance(minuteMs);
    expect(await lines()).toHaveLength(4);
  });

  test("has wrong answers in an operator's session, not those in a key's", async () => {
    const confirm = (id: string) =>
      world.mesh.confirmSession({
        ...{ sessionSha256: sha256(id), secretSha256: sha256(wrong), client: "a" },
      });
    await signIn("key");
    await confirm("key");
    expect(await lines()).toEqual([]);
    await begin("s1");
    await later();
    await confirm("s1");
    expect((await lines()).map(({ outcome }) => outcome)).toEqual([
      ActionOutcome.DONE,
      ActionOutcome.REFUSED,
    ]);
  });
});

describe("a person by an identity provider", () => {
  const person = { issuer: "https://id.example", subject: "anna", confirmed: false };
  const begin = (
    id: string,
    given: Partial<{ owner: boolean; account: string; subject: string }>,
  ) =>
    world.mesh.createIdentitySession({
      sessionSha256: sha256(id),
      identity: { ...person, subject: given.subject ?? person.subject },
      accountId: given.account ?? accountId,
      owner: given.owner ?? false,
    });

  test("has one key an account, over all sign-ins, which its owners can see", async () => {
    const first = await begin("s1", {});
    const again = await begin("s2", {});
    const other = await begin("s3", { subject: "ben" });
    expect(again.key?.keyId).toBe(first.key?.keyId);
    expect(other.key?.keyId).not.toBe(first.key?.keyId);
    expect(first.key).toMatchObject({ accountId, name: "Console: anna" });
    const { keys } = await world.admin.listKeys({ accountId });
    expect(keys.map((key) => key.keyId)).toContain(first.key?.keyId);
    expect(await lookUp("s1")).toMatchObject({ session: { identity: person } });
  });

  test("gains and loses an owner's scopes with the claim, and keeps what was narrowed", async () => {
    const first = await begin("s1", {});
    expect(first.key?.scopes).not.toContain(Scope.KEYS);
    const owner = await begin("s2", { owner: true });
    expect(owner.key?.scopes).toContain(Scope.KEYS);
    expect(owner.key?.scopes).toContain(Scope.USAGE_READ_ALL);
    const member = await begin("s3", {});
    expect(member.key?.scopes).toEqual(first.key?.scopes);
  });

  test("is refused where the account is being closed, as its keys are", async () => {
    await begin("s1", {});
    await signIn("s2");
    await world.admin.closeAccount({ accountId });
    expect([await isAlive("s1"), await isAlive("s2")]).toEqual([false, false]);
    await expect(begin("s3", {})).rejects.toThrow();
    await expect(signIn("s4")).rejects.toThrow();
  });

  test("is refused where the key was revoked, and where there is no such account", async () => {
    const { key } = await begin("s1", {});
    await world.admin.revokeKey({ keyId: key?.keyId ?? "" });
    expect(await isAlive("s1")).toBe(false);
    await expect(begin("s2", {})).rejects.toThrow();
    await expect(begin("s3", { account: "acct_nobody" })).rejects.toThrow();
  });
});
