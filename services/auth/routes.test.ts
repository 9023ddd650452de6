import { createHash } from "node:crypto";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { settingsBody } from "#kit/base/settings-body.ts";
import { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { createAuthWorld } from "../../test/contract/keys.world.ts";

let world: Awaited<ReturnType<typeof createAuthWorld>>;
beforeEach(async () => {
  world = await createAuthWorld();
});
afterEach(() => world[Symbol.asyncDispose]());

const sha256 = (secret: string) => createHash("sha256").update(secret).digest();
const lookUp = (secret: string) => world.mesh.lookUpKey({ secretSha256: sha256(secret) });
const reason = (reason: ErrorReason) => expect.objectContaining({ reason });
const ms = (time: Timestamp | undefined) => (time ? timestampMs(time) : undefined);
const withoutBigints = (_: string, one: unknown) => (typeof one === "bigint" ? `${one}` : one);
const chosen = "chosen-by-the-operator_1";

describe("who may call", () => {
  const adminCalls = {
    createAccount: (c: typeof world.mesh) => c.createAccount({ name: "n" }),
    getAccount: (c: typeof world.mesh) => c.getAccount({ accountId: "a" }),
    listAccounts: (c: typeof world.mesh) => c.listAccounts({}),
    addKey: (c: typeof world.mesh) => c.addKey({ accountId: "a" }),
    createKey: (c: typeof world.mesh) => c.createKey({ accountId: "a" }),
    rotateKey: (c: typeof world.mesh) => c.rotateKey({ keyId: "k" }),
    revokeKey: (c: typeof world.mesh) => c.revokeKey({ keyId: "k" }),
    listKeys: (c: typeof world.mesh) => c.listKeys({ accountId: "a" }),
    updateAccount: (c: typeof world.mesh) => c.updateAccount({ accountId: "a" }),
  };

  test.each(Object.entries(adminCalls))("%s takes the admin token alone", async (_, call) => {
    await expect(call(world.mesh)).rejects.toEqual(reason(ErrorReason.CALLER_FORBIDDEN));
    await expect(call(world.stranger)).rejects.toEqual(reason(ErrorReason.CALLER_UNAUTHENTICATED));
    expect((await world.admin.listAccounts({})).accounts).toEqual([]);
  });

  test("a look-up takes the mesh token", async () => {
    const { secret } = await world.admin.createAccount({ name: "n" });
    expect((await lookUp(secret)).key?.keyId).toMatch(/^key_/);
    await expect(world.stranger.lookUpKey({ secretSha256: sha256(secret) })).rejects.toEqual(
      reason(ErrorReason.CALLER_UNAUTHENTICATED),
    );
  });
});

describe("accounts", () => {
  test("notes are shown with one account to operators, and nowhere else", async () => {
    const { account, secret } = await world.admin.createAccount({ name: "Ada" });
    const accountId = account?.accountId ?? "";
    const change = (body: JsonObject) =>
      world.admin.updateAccount({ accountId, body: settingsBody(body) });
    const notes = "\u{1f980}".repeat(2_000);
    expect((await change({ name: "Lovelace", notes })).account).toMatchObject({
      ...{ accountId, name: "Lovelace", notes },
    });
    expect((await world.admin.getAccount({ accountId })).account?.notes).toBe(notes);
    const lists = [
      await world.admin.listAccounts({}),
      await world.admin.listAccounts({ query: "love" }),
      await world.admin.listAccounts({ accountIds: [accountId, "acct_none", "no id"] }),
    ];
    for (const { accounts } of lists) {
      expect(accounts.map((one) => [one.name, one.notes])).toEqual([["Lovelace", ""]]);
    }
    expect(JSON.stringify(await lookUp(secret), withoutBigints)).not.toContain("\u{1f980}");
    for (const [body, told] of [
      [{ notes: `${notes}.` }, { reason: ErrorReason.INVALID_VALUE, param: "notes" }],
      [{ name: " " }, { reason: ErrorReason.INVALID_VALUE, param: "name" }],
      [{ name: null }, { reason: ErrorReason.MISSING_REQUIRED_PARAMETER }],
      [{ notes: 7 }, { reason: ErrorReason.INVALID_TYPE, param: "notes" }],
      [{ note: "x" }, { reason: ErrorReason.UNSUPPORTED_PARAMETER, param: "note" }],
    ] as const) {
      await expect(change({ ...body, requestsPerMinute: 7 })).rejects.toMatchObject(told);
    }
    expect((await change({ notes: null })).account).toMatchObject({
      ...{ notes: "", requestsPerMinute: 6_000 },
    });
    await change({ notes: "again" });
    await world.admin.closeAccount({ accountId });
    expect((await world.admin.getAccount({ accountId })).account).toMatchObject({
      ...{ name: "", notes: "" },
    });
    await expect(change({ notes: "late" })).rejects.toEqual(reason(ErrorReason.OPERATION_CONFLICT));
  });

  test("a new one comes with a key that may do everything, its secret shown once", async () => {
    const made = await world.admin.createAccount({ name: "Ada" });
    expect(made.account).toMatchObject({ name: "Ada", requestsPerMinute: 6_000 });
    expect(made.account?.accountId).toMatch(/^acct_[a-z0-9]{20}$/);
    expect(ms(made.account?.createTime)).toBe(world.clock.now());
    expect(made.key?.keyId).toMatch(/^key_[a-z0-9]{20}$/);
    expect(made.secret).toMatch(/^gm_[A-Za-z0-9]{40}$/);
    expect(made.key).toMatchObject({
      secretHint: made.secret.slice(-4),
      scopes: [],
      allowedModels: [],
      requestsPerMinute: 3_000,
    });
    expect(made.key?.monthlyUsdMicrosLimit).toBeUndefined();
    const accountId = made.account?.accountId ?? "";
    expect((await world.admin.getAccount({ accountId })).account).toEqual(made.account);
    expect((await world.admin.listKeys({ accountId })).keys).toEqual([made.key]);
  });

  test("the store holds no secret", async () => {
    const { secret } = await world.admin.createAccount({ name: "Ada" });
    for (const table of ["auth_account", "auth_key"]) {
      const rows = world.sqlite.all(`SELECT * FROM ${table}`);
      const values = rows
        .flatMap((row) => Object.values(row))
        .map((value) =>
          value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value),
        );
      expect(values.filter((value) => value.includes(secret.slice(3, 30)))).toEqual([]);
    }
  });

  test("an operation id makes one, and only a repeat that brings the secret sees it", async () => {
    const request = { name: "demo", apiKey: chosen, operationId: "bootstrap" };
    const first = await world.admin.createAccount(request);
    expect(first).toMatchObject({ replayed: false, secret: chosen });
    const again = await world.admin.createAccount(request);
    expect(again).toMatchObject({ replayed: true, secret: chosen, account: first.account });
    const silent = await world.admin.createAccount({ name: "demo", operationId: "bootstrap" });
    expect(silent).toMatchObject({ replayed: true, secret: "", account: first.account });
    await expect(world.admin.createAccount({ ...request, apiKey: `${chosen}x` })).rejects.toEqual(
      reason(ErrorReason.OPERATION_MISMATCH),
    );
    expect((await world.admin.listAccounts({})).accounts).toHaveLength(1);
  });

  test("a drawn secret is not shown again", async () => {
    const first = await world.admin.createAccount({ name: "demo", operationId: "op" });
    const again = await world.admin.createAccount({ name: "demo", operationId: "op" });
    expect(again).toMatchObject({ replayed: true, secret: "", key: first.key });
    expect((await lookUp(first.secret)).key?.keyId).toBe(first.key?.keyId);
  });

  test("a secret in use is refused", async () => {
    await world.admin.createAccount({ name: "a", apiKey: chosen });
    await expect(world.admin.createAccount({ name: "b", apiKey: chosen })).rejects.toEqual(
      reason(ErrorReason.OPERATION_CONFLICT),
    );
  });

  test.each([
    ["name", { name: "" }],
    ["name", { name: "   " }],
    ["name", { name: "é".repeat(201) }],
    ["api_key", { name: "n", apiKey: "a".repeat(19) }],
    ["api_key", { name: "n", apiKey: "a".repeat(201) }],
    ["api_key", { name: "n", apiKey: "a secret with blanks in it" }],
    ["api_key", { name: "n", apiKey: `${chosen}\n` }],
    ["operation_id", { name: "n", operationId: "o".repeat(129) }],
  ])("a bad %s is refused by name, not by value", async (field, request) => {
    const error = await world.admin.createAccount(request).catch((e: unknown) => e);
    expect(error).toMatchObject({ reason: ErrorReason.INVALID_ARGUMENT, metadata: { field } });
    if ("apiKey" in request) expect(JSON.stringify(error)).not.toContain(request.apiKey);
  });

  test.each([20, 200])("a secret of %i characters is taken", async (length) => {
    const apiKey = "aZ0_-".repeat(40).slice(0, length);
    expect(await world.admin.createAccount({ name: "n", apiKey })).toMatchObject({
      secret: apiKey,
    });
  });

  test("pages", async () => {
    for (const name of ["a", "b", "c", "d", "e"]) {
      await world.admin.createAccount({ name });
      await world.clock.advance(1);
    }
    const names: string[] = [];
    let pageToken = "";
    let pages = 0;
    do {
      const page = await world.admin.listAccounts({ pageSize: 2, pageToken });
      names.push(...page.accounts.map((account) => account.name));
      pageToken = page.nextPageToken;
      pages += 1;
    } while (pageToken !== "");
    expect(names).toEqual(["a", "b", "c", "d", "e"]);
    expect(pages).toBe(3);
    const invalid = reason(ErrorReason.INVALID_ARGUMENT);
    await expect(world.admin.listAccounts({ pageToken: "?" })).rejects.toEqual(invalid);
    await expect(world.admin.listAccounts({ pageSize: 1_001 })).rejects.toEqual(invalid);
    await expect(world.admin.listAccounts({ pageSize: -1 })).rejects.toEqual(invalid);
  });
});

describe("keys", () => {
  const account = async () => {
    const made = await world.admin.createAccount({ name: "n" });
    return made.account?.accountId ?? "";
  };

  const bytes = (body: object) => new TextEncoder().encode(JSON.stringify(body));

  /** By a body, or by the older fields. */
  const make = (wanted: { accountId: string; body?: Uint8Array<ArrayBuffer> }) =>
    wanted.body ? world.admin.addKey(wanted) : world.admin.createKey(wanted);

  /** A body's values in the older fields. */
  const asFields = (expiresAtMs: number) => ({
    scopes: [Scope.TEXT, Scope.TEXT, Scope.FILES],
    allowedModels: ["chat-1", "chat-1"],
    expireTime: timestampFromMs(expiresAtMs),
    monthlyUsdMicrosLimit: 0n,
    limitReset: KeyLimitReset.NEVER,
    requestsPerMinute: 1,
    name: "Ada's",
    webhookUrl: "https://example.com/hooks",
  });
  const asBody = (expiresAtMs: number) => ({
    body: bytes({
      scopes: ["text", "text", "files"],
      models: ["chat-1", "chat-1"],
      expiresAt: new Date(expiresAtMs).toISOString(),
      limit: 0,
      limit_reset: null,
      requestsPerMinute: 1,
      name: "Ada's",
      webhookUrl: "https://example.com/hooks",
    }),
  });

  test.each([
    ["a body", asBody],
    ["the fields of before", asFields],
  ])("a key has what %s gave it", async (_, given) => {
    const accountId = await account();
    const made = await make({ accountId, ...given(world.clock.now() + 1_000) });
    expect(made.key).toMatchObject({
      accountId,
      scopes: [Scope.TEXT, Scope.FILES],
      allowedModels: ["chat-1"],
      monthlyUsdMicrosLimit: 0n,
      limitReset: KeyLimitReset.NEVER,
      requestsPerMinute: 1,
      name: "Ada's",
      webhookUrl: "https://example.com/hooks",
    });
    const found = await lookUp(made.secret);
    expect(found.key).toEqual(made.key);
    expect(ms(found.validUntil)).toBe(world.clock.now() + 1_000);
    expect(found.accountRequestsPerMinute).toBe(6_000);
    await world.clock.advance(999);
    await lookUp(made.secret);
    await world.clock.advance(1);
    await expect(lookUp(made.secret)).rejects.toEqual(reason(ErrorReason.INVALID_API_KEY));
  });

  test.each([
    ["an empty body", { body: bytes({}) }],
    ["no body", {}],
    ["a body that takes every bound away", { body: bytes({ models: null, limit: null }) }],
  ])("of %s a key has no bounds and no name", async (_, given) => {
    const accountId = await account();
    const { key } = await make({ accountId, ...given });
    expect(key).toMatchObject({
      ...{ name: "", scopes: [], allowedModels: [], requestsPerMinute: 3_000, webhookUrl: "" },
      limitReset: KeyLimitReset.MONTHLY,
    });
    expect([key?.monthlyUsdMicrosLimit, key?.expireTime]).toEqual([undefined, undefined]);
  });

  test.each([
    ["scopes[0]", { scopes: [Scope.UNSPECIFIED] }],
    ["scopes[0]", { scopes: [99 as Scope] }],
    ["models[0]", { allowedModels: [""] }],
    ["models", { allowedModels: Array.from({ length: 201 }, (_, i) => `m${i}`) }],
    ["expiresAt", { expireTime: timestampFromMs(Date.UTC(2026, 0, 15, 12)) }],
    ["expiresAt", { expireTime: { seconds: 10n ** 15n, nanos: 0 } as Timestamp }],
    ["limitUsdMicros", { monthlyUsdMicrosLimit: -1n }],
    ["limit_reset", { limitReset: 9 as KeyLimitReset }],
    ["requestsPerMinute", { requestsPerMinute: -1 }],
    ["requestsPerMinute", { requestsPerMinute: 1_000_001 }],
    ["name", { name: " " }],
    ["name", { body: bytes({ name: " " }) }],
    ["scopes[0]", { body: bytes({ scopes: ["nothing"] }) }],
    ["limit_reset", { body: bytes({ limit: 1, limit_reset: "yearly" }) }],
    ["webhookUrl", { body: bytes({ webhookUrl: "ftp://example.com" }) }],
    ["expiresAt", { body: bytes({ expiresAt: "2026-01-15T12:00:00Z" }) }],
  ])("a bad %s is refused, and no key is made", async (param, request) => {
    const accountId = await account();
    await expect(make({ accountId, ...request })).rejects.toMatchObject({
      reason: ErrorReason.INVALID_VALUE,
      param,
    });
    expect((await world.admin.listKeys({ accountId })).keys).toHaveLength(1);
  });

  test("an unknown property is refused, and so is what only a change may name", async () => {
    const accountId = await account();
    for (const param of ["limitUsdMicro", "disabled", "lowBalanceUsdMicros"]) {
      const made = make({ accountId, body: bytes({ [param]: null }) });
      await expect(made).rejects.toMatchObject({
        reason: ErrorReason.UNSUPPORTED_PARAMETER,
        param,
      });
    }
  });

  test("rotation: both secrets to the end of the grace, then the new one", async () => {
    const first = await world.admin.createAccount({ name: "n" });
    const keyId = first.key?.keyId ?? "";
    const next = await world.admin.rotateKey({ keyId, graceSeconds: 60 });
    const graceEnd = world.clock.now() + 60_000;
    expect(next.key?.keyId).toBe(keyId);
    expect(next.secret).not.toBe(first.secret);
    expect(ms(next.key?.formerSecretEndTime)).toBe(graceEnd);
    expect(ms((await lookUp(first.secret)).validUntil)).toBe(graceEnd);
    expect((await lookUp(next.secret)).validUntil).toBeUndefined();
    await world.clock.advance(60_000);
    await expect(lookUp(first.secret)).rejects.toEqual(reason(ErrorReason.INVALID_API_KEY));
    const found = await lookUp(next.secret);
    expect(found.key?.keyId).toBe(keyId);
    expect(found.key?.formerSecretEndTime).toBeUndefined();
  });

  test("a grace that the caller did not choose is a day", async () => {
    const { key } = await world.admin.createAccount({ name: "n" });
    const next = await world.admin.rotateKey({ keyId: key?.keyId ?? "" });
    expect(ms(next.key?.formerSecretEndTime)).toBe(world.clock.now() + 86_400_000);
  });

  test.each([-1, 2_592_001])("a grace of %i s is refused", async (graceSeconds) => {
    const { key } = await world.admin.createAccount({ name: "n" });
    const rotate = world.admin.rotateKey({ keyId: key?.keyId ?? "", graceSeconds });
    await expect(rotate).rejects.toEqual(reason(ErrorReason.INVALID_ARGUMENT));
  });

  test("grace 0 ends the former secret at once", async () => {
    const { key, secret } = await world.admin.createAccount({ name: "n" });
    await world.admin.rotateKey({ keyId: key?.keyId ?? "", graceSeconds: 0 });
    await expect(lookUp(secret)).rejects.toEqual(reason(ErrorReason.INVALID_API_KEY));
  });

  test("revocation ends every secret, is idempotent, and is counted once", async () => {
    const first = await world.admin.createAccount({ name: "n" });
    const keyId = first.key?.keyId ?? "";
    const next = await world.admin.rotateKey({ keyId });
    const revoked = await world.admin.revokeKey({ keyId });
    await world.clock.advance(5);
    expect(await world.admin.revokeKey({ keyId })).toEqual(revoked);
    for (const secret of [first.secret, next.secret]) {
      await expect(lookUp(secret)).rejects.toEqual(reason(ErrorReason.INVALID_API_KEY));
    }
    await expect(world.admin.rotateKey({ keyId })).rejects.toEqual(
      reason(ErrorReason.OPERATION_CONFLICT),
    );
    expect(await world.metrics.text()).toContain(
      'genmesh_auth_key_changes_total{change="revoked"} 1',
    );
  });

  test("unknown ids and malformed hashes", async () => {
    await expect(world.admin.createKey({ accountId: "acct_x" })).rejects.toEqual(
      reason(ErrorReason.ACCOUNT_NOT_FOUND),
    );
    await expect(world.admin.getAccount({ accountId: "acct_x" })).rejects.toEqual(
      reason(ErrorReason.ACCOUNT_NOT_FOUND),
    );
    await expect(world.admin.revokeKey({ keyId: "key_x" })).rejects.toEqual(
      reason(ErrorReason.KEY_NOT_FOUND),
    );
    await expect(lookUp("nobody's")).rejects.toEqual(reason(ErrorReason.INVALID_API_KEY));
    await expect(world.mesh.lookUpKey({ secretSha256: new Uint8Array(31) })).rejects.toEqual(
      reason(ErrorReason.INVALID_ARGUMENT),
    );
  });
});
