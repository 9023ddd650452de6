import { MongoClient } from "mongodb";
import { percentile } from "./load.ts";

// The least time of a mesh on this database: the two durable writes, one after the other, that a request waits for before the model server.
// It uses only the driver. Prints the median of the pair in milliseconds.

const [url = "", seconds = "1"] = process.argv.slice(2);
/** Pairs that are not counted, while connections are made and code is compiled. */
const warmUpPairs = 20;

await using client = new MongoClient(url, { writeConcern: { w: "majority", journal: true } });
const records = client.db().collection("bench_floor_records");
const wallets = client.db().collection<{ _id: string }>("bench_floor_wallets");
await wallets.updateOne({ _id: "wallet" }, { $set: { held: 0 } }, { upsert: true });

const took: number[] = [];
let endsAt = 0;
for (let pair = 0; endsAt === 0 || performance.now() < endsAt; pair++) {
  if (pair === warmUpPairs) endsAt = performance.now() + Number(seconds) * 1_000;
  const beganAt = performance.now();
  await records.insertOne({ text: "x".repeat(300), at: pair });
  await wallets.updateOne({ _id: "wallet", held: pair }, { $set: { held: pair + 1 } });
  if (pair >= warmUpPairs) took.push(performance.now() - beganAt);
}
await wallets.deleteOne({ _id: "wallet" });
process.stdout.write(`${percentile(took, 0.5)}\n`);
