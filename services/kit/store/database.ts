import type { MongoDatabase } from "./mongo/connect.ts";
import type { SqliteDatabase } from "./sqlite.ts";

/** The database of a process. Each service picks its store adapter by `kind`. */
export type Database =
  | { kind: "sqlite"; sqlite: SqliteDatabase }
  | { kind: "mongodb"; mongo: MongoDatabase };
