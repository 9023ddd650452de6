// Knows the MongoDB schemas of all services together, and migrates them. `genmesh migrate` is its caller. Each role migrates its
// own when it starts.

import { isRefusal } from "#kit/base/errors.ts";
import type { MongoSchema } from "#kit/store/mongo/migrate.ts";
import { ConfigError } from "./env.ts";

/** The version to which a component's collections were brought. */
export interface Migrated {
  component: string;
  version: number;
}

/**
 * Brings every collection of the mesh up to this build, as each role does with its own when it starts. It is safe beside roles that
 * start at the same time. Throws ConfigError for a database that a newer build has written, before anything is changed.
 */
export async function migrateMesh(databaseUrl: string): Promise<Migrated[]> {
  const { openMongo } = await import("#kit/store/mongo/connect.ts");
  const { migrate, NewerSchemaError } = await import("#kit/store/mongo/migrate.ts");
  const schemas = await meshSchemas();
  await using db = openMongo({ url: databaseUrl });
  try {
    await migrate(db, schemas);
  } catch (error) {
    if (error instanceof NewerSchemaError) throw new ConfigError(error.message);
    if (isRefusal(error)) {
      throw new ConfigError("the database of GENMESH_DATABASE_URL does not answer");
    }
    throw error;
  }
  return schemas.map(({ component, steps }) => ({ component, version: steps.length }));
}

/** The schemas of all roles in MongoDB. */
export async function meshSchemas(): Promise<MongoSchema[]> {
  const { mongoSchemaOf } = await import("#kit/documents/mongo.ts");
  const [
    auth,
    billing,
    alerts,
    grants,
    catalog,
    text,
    jobs,
    files,
    quota,
    speech,
    webhooks,
    history,
    notices,
  ] = await Promise.all([
    import("../auth/index.ts"),
    import("../billing/index.ts"),
    import("../billing/alerts/store-documents.ts"),
    import("../billing/grants/store-documents.ts"),
    import("../catalog/index.ts"),
    import("../text/index.ts"),
    import("../media/jobs/store-mongo-docs.ts"),
    import("../media/files/store-mongo-docs.ts"),
    import("../media/files/quota-mongo-wallet.ts"),
    import("../media/speech/store-documents.ts"),
    import("../media/webhooks/store-documents.ts"),
    import("../upstreams/health/history-store.ts"),
    import("../notices/store.ts"),
  ]);
  return [
    auth.authMongoSchema,
    mongoSchemaOf(auth.sessionComponent),
    mongoSchemaOf(auth.operatorComponent),
    mongoSchemaOf(auth.auditComponent),
    billing.ledgerMongoSchema,
    mongoSchemaOf(alerts.alertsComponent),
    mongoSchemaOf(grants.grantsComponent),
    mongoSchemaOf(catalog.catalogComponent),
    mongoSchemaOf(catalog.storedKeyComponent),
    text.textMongoSchema,
    jobs.jobsMongoSchema,
    files.filesMongoSchema,
    quota.quotaMongoSchema,
    mongoSchemaOf(speech.speechComponent),
    mongoSchemaOf(webhooks.webhooksComponent),
    mongoSchemaOf(history.historyComponent),
    mongoSchemaOf(notices.noticesComponent),
  ];
}
