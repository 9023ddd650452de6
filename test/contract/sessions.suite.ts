import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { newSession, type Session } from "../../services/auth/session.ts";
import type { SessionStore } from "../../services/auth/session-store.ts";
import { t0 } from "./keys.shapes.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest();

function session(id: string, given: Partial<Session> = {}, nowMs = t0): Session {
  const begun = { sha256: sha256(id), keyId: "key_a", secretSha256: sha256("secret") };
  return { ...newSession(begun, nowMs), ...given };
}

/** The rules for every store of sessions. `open` gives two clients of one empty store. */
export function sessionStoreContract(open: () => Promise<[SessionStore, SessionStore]>): void {
  describe("sessions", () => {
    test("are read back as they were made, by any client", async () => {
      const [store, other] = await open();
      const ofKey = session("1");
      const { keyId: _none, ...ofOperator } = session("2", {
        identity: { issuer: "https://id.example", subject: "anna", confirmed: true },
      });
      await store.create(ofKey, 10);
      await store.create(ofOperator, 10);
      expect(await other.find(sha256("1"))).toEqual(ofKey);
      expect(await other.find(sha256("2"))).toEqual(ofOperator);
      expect(await other.find(sha256("3"))).toBeUndefined();
    });

    test("end for every client, and a repeat does nothing", async () => {
      const [store, other] = await open();
      await store.create(session("1"), 10);
      await store.create(session("2"), 10);
      await other.end(sha256("1"));
      await store.end(sha256("1"));
      expect(await store.find(sha256("1"))).toBeUndefined();
      expect(await store.find(sha256("2"))).toBeDefined();
    });

    test("the time of the last use rises and never falls", async () => {
      const [store, other] = await open();
      await store.create(session("1"), 10);
      await store.touch(sha256("1"), t0 + 5);
      await other.touch(sha256("1"), t0 + 3);
      expect(await store.find(sha256("1"))).toMatchObject({ createdAtMs: t0, seenAtMs: t0 + 5 });
      await store.touch(sha256("none"), t0 + 9);
      expect(await store.find(sha256("none"))).toBeUndefined();
    });

    test("all of an operator who signs in by name end at once, and no others", async () => {
      const [store, other] = await open();
      const { keyId: _none, ...token } = session("token");
      const named = (id: string, name: string) => {
        const { keyId: _key, ...rest } = session(id, { operator: { name, epoch: "epoch_1" } });
        return rest;
      };
      for (const one of [token, named("1", "anna"), named("2", "anna"), named("3", "ann")]) {
        await store.create(one, 10);
      }
      await other.confirm(sha256("3"), t0 + 7);
      expect(await store.find(sha256("3"))).toEqual({
        ...named("3", "ann"),
        confirmedAtMs: t0 + 7,
      });
      await other.endOf("anna");
      const left = await Promise.all(["token", "1", "2", "3"].map((id) => store.find(sha256(id))));
      expect(left.map((one) => one !== undefined)).toEqual([true, false, false, true]);
      await store.endOf("anna");
    });

    test("no more than so many of one key stay, the newest; others' are not counted", async () => {
      const [store] = await open();
      await store.create(session("other", { keyId: "key_b" }), 2);
      for (const n of [1, 2, 3, 4]) await store.create(session(`${n}`, {}, t0 + n), 2);
      const left = await Promise.all(
        ["other", "1", "2", "3", "4"].map((id) => store.find(sha256(id))),
      );
      expect(left.map((one) => one !== undefined)).toEqual([true, false, false, true, true]);
    });

    test("those that ended are forgotten when another begins", async () => {
      const [store] = await open();
      const first = session("1");
      await store.create(first, 10);
      await store.create(session("2", { keyId: "key_b" }, first.endsAtMs - 1), 10);
      expect(await store.find(sha256("1"))).toBeDefined();
      await store.create(session("3", { keyId: "key_c" }, first.endsAtMs), 10);
      expect(await store.find(sha256("1"))).toBeUndefined();
      expect(await store.find(sha256("2"))).toBeDefined();
    });
  });
}
