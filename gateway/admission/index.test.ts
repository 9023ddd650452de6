import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { impliedScopes } from "#common/words/scopes.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { createMetrics, type Metrics } from "#kit/base/metrics.ts";
import { settingsBody } from "#kit/base/settings-body.ts";
import { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { createAuthWorld } from "../../test/contract/keys.world.ts";
import type { Deferral } from "../context.ts";
import { createAdmission, type LiveAdmission } from "./index.ts";
import type { AdmittedKey } from "./key-cache.ts";

let world: Awaited<ReturnType<typeof createAuthWorld>>;
let admission: LiveAdmission;
let metrics: Metrics;
let accountId: string;
let secret: string;
beforeEach(async () => {
  world = await createAuthWorld();
  const made = await world.admin.createAccount({ name: "n" });
  accountId = made.account?.accountId ?? "";
  secret = made.secret;
  metrics = createMetrics();
  admission = createAdmission({ auth: world.mesh, clock: world.clock, log: world.log, metrics });
  await admission.ready;
});
afterEach(async () => {
  await admission[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const admit = async (
  sent: string | undefined,
  scope: Scope = Scope.TEXT,
  deferral: Deferral = "nothing",
) => admission.admit(sent, scope, deferral);

describe("401", () => {
  const unauthorized = { reason: ErrorReason.INVALID_API_KEY };

  test.each([
    ["missing", undefined],
    ["empty", ""],
    ["without a scheme", "gm_aaaaaaaaaaaaaaaaaaaaaaaa"],
    ["of another scheme", "Basic gm_aaaaaaaaaaaaaaaaaaaaaaaa"],
    ["a scheme alone", "Bearer"],
    ["a scheme and a blank", "Bearer "],
    ["too short", `Bearer ${"a".repeat(19)}`],
    ["too long", `Bearer ${"a".repeat(201)}`],
    ["of other characters", `Bearer ${"a".repeat(20)}!`],
    ["two words", `Bearer ${"a".repeat(20)} ${"b".repeat(20)}`],
    ["two headers in one", `Bearer ${"a".repeat(20)}, Bearer ${"b".repeat(20)}`],
    ["with a line's end", `Bearer ${"a".repeat(20)}\n`],
  ])("a header that is %s, without a call", async (_, sent) => {
    await expect(admit(sent)).rejects.toMatchObject(unauthorized);
    // An idempotency key opens nothing here.
    await expect(admit(sent, Scope.TEXT, "scope and rate")).rejects.toMatchObject(unauthorized);
    expect(world.wire.calls("LookUpKey")).toBe(0);
  });

  test("unknown", async () => {
    await expect(admit(`Bearer ${"a".repeat(40)}`)).rejects.toMatchObject(unauthorized);
  });

  test("the right secret in another case", async () => {
    const other = `gm_${secret.slice(3).toLowerCase()}`;
    await expect(admit(`Bearer ${other}`)).rejects.toMatchObject(unauthorized);
  });

  test("revoked", async () => {
    await admit(`Bearer ${secret}`);
    const { keys } = await world.admin.listKeys({ accountId });
    await world.admin.revokeKey({ keyId: keys[0]?.keyId ?? "" });
    await world.clock.advance(1_000);
    await expect(admit(`Bearer ${secret}`)).rejects.toMatchObject(unauthorized);
  });

  test("expired", async () => {
    const expireTime = timestampFromMs(world.clock.now() + 3_000);
    const made = await world.admin.createKey({ accountId, expireTime });
    await admit(`Bearer ${made.secret}`);
    await world.clock.advance(3_000);
    await expect(admit(`Bearer ${made.secret}`)).rejects.toMatchObject(unauthorized);
  });

  test("a former secret past its grace", async () => {
    const { keys } = await world.admin.listKeys({ accountId });
    await world.admin.rotateKey({ keyId: keys[0]?.keyId ?? "", graceSeconds: 3 });
    await admit(`Bearer ${secret}`);
    await world.clock.advance(3_000);
    await expect(admit(`Bearer ${secret}`)).rejects.toMatchObject(unauthorized);
  });

  test("no refusal and no metric tells a secret", async () => {
    const sent = `Bearer ${"z".repeat(40)}`;
    const error: unknown = await admit(sent).catch((e: unknown) => e);
    expect(isRefusal(error) && JSON.stringify([error.message, error.metadata])).not.toContain(
      "zzz",
    );
    await admit(`Bearer ${secret}`);
    expect(await metrics.text()).not.toContain(secret.slice(0, 20));
  });
});

describe("an admitted request", () => {
  test.each(["Bearer ", "bearer ", "BEARER  "])("takes the scheme '%s'", async (scheme) => {
    expect((await admit(scheme + secret)).principal.accountId).toBe(accountId);
  });

  test("carries principal, limits and rate headers", async () => {
    const made = await world.admin.createKey({
      accountId,
      allowedModels: ["chat-1"],
      monthlyUsdMicrosLimit: 5n,
      requestsPerMinute: 60,
    });
    expect(await admit(`Bearer ${made.secret}`)).toEqual({
      principal: { accountId, keyId: made.key?.keyId },
      admission: { allowedModels: ["chat-1"], monthlyUsdMicrosLimit: 5n },
      headers: {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
      },
      scopes: impliedScopes,
    });
  });

  test("a limit of 0 is a limit, not the lack of one", async () => {
    const made = await world.admin.createKey({ accountId, monthlyUsdMicrosLimit: 0n });
    const { admission: fields } = await admit(`Bearer ${made.secret}`);
    expect(fields.monthlyUsdMicrosLimit).toBe(0n);
    expect((await admit(`Bearer ${secret}`)).admission).toEqual({ allowedModels: [] });
  });
});

describe("scope", () => {
  test("a key with scopes may use those alone; any valid key will do where none is asked for", async () => {
    const made = await world.admin.createKey({ accountId, scopes: [Scope.TEXT, Scope.MODELS] });
    const sent = `Bearer ${made.secret}`;
    await admit(sent, Scope.TEXT);
    await admit(sent, Scope.MODELS);
    await admit(sent, Scope.UNSPECIFIED);
    for (const scope of [Scope.IMAGES, Scope.FILES, Scope.BILLING]) {
      await expect(admit(sent, scope)).rejects.toMatchObject({
        reason: ErrorReason.PERMISSION_DENIED,
      });
    }
    const neverImplied = new Set<Scope>([
      ...[Scope.KEYS, Scope.WEBHOOKS, Scope.USAGE_READ_ALL, Scope.JOBS_READ_ALL],
    ]);
    for (const scope of Object.values(Scope)) {
      const asked = admit(`Bearer ${secret}`, scope);
      if (neverImplied.has(scope))
        await expect(asked).rejects.toMatchObject({ reason: ErrorReason.PERMISSION_DENIED });
      else await asked;
    }
  });

  test("where the service checks the syntax before, the refusal is left to it", async () => {
    const made = await world.admin.createKey({ accountId, scopes: [Scope.TEXT] });
    const admitted = await admit(`Bearer ${made.secret}`, Scope.IMAGES, "scope");
    expect(admitted.admission).toMatchObject({
      refuseWith: ErrorReason.PERMISSION_DENIED,
      refusalMessage: "The API key lacks the scope 'images'.",
    });
    expect(admitted.refusal).toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
      message: "The API key lacks the scope 'images'.",
    });
  });
});

describe("rate", () => {
  const limited = async (requestsPerMinute: number, scopes: Scope[] = []) => {
    const made = await world.admin.createKey({ accountId, requestsPerMinute, scopes });
    return `Bearer ${made.secret}`;
  };

  test("above it: 429 with the headers and the time to wait, and later admitted again", async () => {
    const sent = await limited(2);
    await admit(sent);
    await admit(sent);
    await expect(admit(sent)).rejects.toMatchObject({
      reason: ErrorReason.RATE_LIMIT_EXCEEDED,
      metadata: {
        retry_after_ms: "30000",
        "x-ratelimit-limit-requests": "2",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1m0s",
      },
    });
    await world.clock.advance(30_000);
    expect((await admit(sent)).headers["x-ratelimit-remaining-requests"]).toBe("0");
  });

  test("with an idempotency key the refusal is left to the service", async () => {
    const sent = await limited(1);
    await admit(sent);
    const admitted = await admit(sent, Scope.TEXT, "scope and rate");
    expect(admitted.admission.refuseWith).toBe(ErrorReason.RATE_LIMIT_EXCEEDED);
    expect(admitted.refusal?.metadata.retry_after_ms).toBe("60000");
    expect(admitted.headers["x-ratelimit-remaining-requests"]).toBe("0");
  });

  test.each([
    ["counts for itself", false],
    ["shares its rates", true],
  ])(
    "with an idempotency key, as many again are looked up: a gateway that %s",
    async (_, sharesRates) => {
      await using own = createAdmission({
        ...{ auth: world.mesh, clock: world.clock, log: world.log },
        ...{ metrics: createMetrics(), sharesRates },
      });
      await own.ready;
      const sent = await limited(20);
      const ask = async (deferral: Deferral) => own.admit(sent, Scope.TEXT, deferral);
      const keyed = () => ask("scope and rate");
      const overRate = { reason: ErrorReason.RATE_LIMIT_EXCEEDED };
      for (let n = 0; n < 20; n++) expect((await keyed()).refusal).toBeUndefined();
      for (let n = 0; n < 20; n++) expect((await keyed()).refusal).toMatchObject(overRate);
      for (let n = 0; n < 3; n++) {
        await expect(keyed()).rejects.toMatchObject({
          ...overRate,
          metadata: { retry_after_ms: "3000" },
        });
      }
      await world.clock.advance(3_000);
      expect((await keyed()).refusal).toBeUndefined();
      await expect(ask("nothing")).rejects.toMatchObject(overRate);
      expect((await keyed()).refusal).toMatchObject(overRate);
      await expect(keyed()).rejects.toMatchObject(overRate);
    },
  );

  test("a key of one request a minute has ten looked up", async () => {
    const sent = await limited(1);
    for (let n = 0; n < 11; n++) await admit(sent, Scope.TEXT, "scope and rate");
    await expect(admit(sent, Scope.TEXT, "scope and rate")).rejects.toMatchObject({
      reason: ErrorReason.RATE_LIMIT_EXCEEDED,
    });
  });

  test("the look-ups of an account's keys have its rate together", async () => {
    const key: AdmittedKey = {
      ...{ accountId, scopes: new Set([Scope.TEXT]), allowedModels: [], webhookUrl: "" },
      ...{ monthlyUsdMicrosLimit: undefined, limitReset: KeyLimitReset.MONTHLY },
      ...{ requestsPerMinute: 20, accountRequestsPerMinute: 20, accountSuspended: false },
      keyId: "",
    };
    const keyed = async (keyId: string) =>
      admission.admitKey({ ...key, keyId }, Scope.TEXT, "scope and rate");
    for (let n = 0; n < 40; n++) await keyed(`key_${n % 3}`);
    await expect(keyed("key_0")).rejects.toMatchObject({ reason: ErrorReason.RATE_LIMIT_EXCEEDED });
  });

  test.each([
    ["counts for itself", false],
    ["shares its rates", true],
  ])(
    "an account's set rate bounds its keys together: a gateway that %s",
    async (_, sharesRates) => {
      await using own = createAdmission({
        ...{ auth: world.mesh, clock: world.clock, log: world.log },
        ...{ metrics: createMetrics(), sharesRates },
      });
      await own.ready;
      const [one, two] = [await limited(5), await limited(3_000)];
      const ask = async (sent: string) => own.admit(sent, Scope.TEXT, "nothing");
      const set = async (requestsPerMinute: number | null) => {
        const changed = new Promise((resolve) => own.onKeysChanged(resolve));
        await world.admin.updateAccount({ accountId, body: settingsBody({ requestsPerMinute }) });
        await world.clock.advance(1_000);
        await changed;
      };
      await set(2);
      expect((await ask(two)).headers["x-ratelimit-limit-requests"]).toBe("2");
      await ask(one);
      for (const sent of [one, two]) {
        await expect(ask(sent)).rejects.toMatchObject({
          reason: ErrorReason.RATE_LIMIT_EXCEEDED,
          metadata: { "x-ratelimit-limit-requests": "2" },
        });
      }
      await set(null);
      await world.clock.advance(60_000);
      for (let n = 0; n < 5; n++) await ask(one);
      await expect(ask(one)).rejects.toMatchObject({
        metadata: { "x-ratelimit-limit-requests": "5" },
      });
      for (let n = 0; n < 9; n++) await ask(two);
    },
  );

  test("comes before the scope, and a request outside the scope counts", async () => {
    const sent = await limited(1, [Scope.TEXT]);
    const denied = { reason: ErrorReason.PERMISSION_DENIED };
    const overRate = { reason: ErrorReason.RATE_LIMIT_EXCEEDED };
    await expect(admit(sent, Scope.FILES)).rejects.toMatchObject(denied);
    for (const scope of [Scope.FILES, Scope.TEXT]) {
      await expect(admit(sent, scope)).rejects.toMatchObject(overRate);
      await expect(admit(sent, scope, "scope")).rejects.toMatchObject(overRate);
    }
    const kept = await admit(sent, Scope.FILES, "scope and rate");
    expect(kept.admission.refuseWith).toBe(ErrorReason.RATE_LIMIT_EXCEEDED);
  });

  test("a rotated key keeps its bucket", async () => {
    const made = await world.admin.createKey({ accountId, requestsPerMinute: 1 });
    await admit(`Bearer ${made.secret}`);
    const next = await world.admin.rotateKey({ keyId: made.key?.keyId ?? "" });
    await expect(admit(`Bearer ${next.secret}`)).rejects.toMatchObject({
      reason: ErrorReason.RATE_LIMIT_EXCEEDED,
    });
  });
});

test("refusals are counted by reason", async () => {
  await admit(undefined).catch(() => {});
  expect(await metrics.text()).toContain(
    'genmesh_gateway_admission_refusals_total{reason="invalid_api_key"} 1',
  );
});
