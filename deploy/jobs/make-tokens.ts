// The chart's hook Job for the secrets of a release. It makes the Secret where there is none, and adds missing keys. It changes no existing
// key.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { runJob } from "./run-job.ts";

/** Random bytes of a token: 256 bits. */
const tokenBytes = 32;
/** Milliseconds for one call of the API server. */
const callTimeoutMs = 15_000;

const { values } = parseArgs({
  options: {
    secret: { type: "string", default: "genmesh-tokens" },
    instance: { type: "string", default: "genmesh" },
    api: { type: "string", default: "https://kubernetes.default.svc" },
    credentials: { type: "string", default: "/var/run/secrets/kubernetes.io/serviceaccount" },
  },
});

await runJob(async () => {
  const made: Record<string, string> = {
    "mesh-token": fresh(),
    "admin-token": fresh(),
    "bootstrap-api-key": `gm_${fresh()}`,
    "secrets-key": fresh(),
  };
  const created = await call("POST", "", {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: values.secret,
      labels: {
        "app.kubernetes.io/name": "genmesh",
        "app.kubernetes.io/instance": values.instance,
        "app.kubernetes.io/component": "tokens",
      },
    },
    stringData: made,
  });
  if (created.status === 201) return `made the Secret ${values.secret}`;
  if (created.status !== 409) throw await refused("could not make", created);
  const found = await call("GET", `/${values.secret}`);
  if (found.status !== 200) throw await refused("could not read", found);
  const { data = {} } = (await found.json()) as { data?: Record<string, string> };
  const lacking = Object.entries(made).filter(([name]) => !data[name]);
  if (lacking.length === 0) return `the Secret ${values.secret} is there`;
  const patched = await call("PATCH", `/${values.secret}`, {
    stringData: Object.fromEntries(lacking),
  });
  if (patched.status !== 200) throw await refused("could not complete", patched);
  return `added ${lacking.map(([name]) => name).join(", ")} to the Secret ${values.secret}`;
});

function fresh(): string {
  return randomBytes(tokenBytes).toString("base64url");
}

function call(method: string, path: string, body?: unknown): Promise<Response> {
  const read = (name: string) => readFileSync(`${values.credentials}/${name}`, "utf8").trim();
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  return fetch(`${values.api}/api/v1/namespaces/${read("namespace")}/secrets${path}`, {
    method,
    headers: { authorization: `Bearer ${read("token")}`, "content-type": type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(callTimeoutMs),
  });
}

// The server's own text names the verb and the object, never the sent content.
async function refused(what: string, answer: Response): Promise<Error> {
  const { message } = (await answer.json().catch(() => ({}))) as { message?: string };
  return new Error(
    `${what} the Secret ${values.secret}: ${answer.status} ${message ?? ""}`.trimEnd(),
  );
}
