import { once } from "node:events";
import { openMongo } from "#kit/store/mongo/connect.ts";
import { createMongoQuota } from "../../services/media/files/quota-mongo.ts";

/** Lanes of one process. */
const lanes = 8;
const now = Date.UTC(2026, 0, 15);

const [, , what = "", url = "", processName = "", limit = ""] = process.argv;
const accountId = "acct_race";
const limitBytes = Number(limit);
const quota = createMongoQuota(openMongo({ url }));
const say = (line: unknown) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Makes all charges at once. Answers those that got room. */
async function grab(): Promise<void> {
  const got = await Promise.all(
    Array.from({ length: 60 }, async (_, i) => {
      const chargeId = `${processName}_${i}`;
      const outcome = await quota.reserve({ accountId, chargeId }, 1_000, limitBytes);
      return outcome === "reserved" ? [chargeId] : [];
    }),
  );
  say(got.flat());
}

/** Prints the new state of a charge before and after each step. Every third file is deleted again. */
async function live(turns: number): Promise<void> {
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      for (let turn = 0; turn < turns; turn++) {
        const chargeId = `${processName}_${lane}_${turn}`;
        const bytes = 100 + ((lane * 37 + turn * 11) % 900);
        const charge = { accountId, chargeId };
        say({ chargeId, state: "begun" });
        const outcome = await quota.reserve(charge, bytes, limitBytes);
        if (outcome === "full") {
          say({ chargeId, state: "full" });
          continue;
        }
        if (!(await quota.commit(charge))) throw new Error("not committed");
        say({ chargeId, state: "used", bytes });
        if (turn % 3 !== 0) continue;
        say({ chargeId, state: "going" });
        await quota.release(charge, now);
        say({ chargeId, state: "released" });
      }
    }),
  );
  say("end");
}

process.stdout.write("ready\n");
await once(process.stdin, "data");
if (what === "grab") await grab();
else await live(what === "live" ? 6 : Number.POSITIVE_INFINITY);
process.exit(0);
