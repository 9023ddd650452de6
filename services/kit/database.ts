import type { MongoDatabase } from "./mongo/connect.ts";
import type { SqliteDatabase } from "./sqlite.ts";

/** The database of a process; each service picks its store adapter by `kind`. */
export type Database =
  | { kind: "sqlite"; sqlite: SqliteDatabase }
  | { kind: "mongodb"; mongo: MongoDatabase };

/** For a service without an adapter for this kind. The configuration is refused before, so nobody meets it. */
export function noAdapter(service: string, { kind }: Database): never {
  throw new Error(`${service} has no store for a ${kind} database`);
}
