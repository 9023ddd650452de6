// Joins the two kinds of databases in one type. A service gets one, and picks the adapter of its store by the kind.

import type { MongoDatabase } from "./mongo/connect.ts";
import type { SqliteDatabase } from "./sqlite.ts";

/** The database of a process. Each service picks its store adapter by `kind`. */
export type Database =
  | { kind: "sqlite"; sqlite: SqliteDatabase }
  | { kind: "mongodb"; mongo: MongoDatabase };
