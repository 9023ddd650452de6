// Makes kubernetes.schemas.json from an API server's OpenAPI (`kubectl get --raw /openapi/v2`, or the file of the Kubernetes sources). It
// has the definitions of the charts' objects without their texts. They are strict, so that a misspelt field is found.
//
// node test/charts/make-schemas.ts OPENAPI.json
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Kubernetes' own kinds in the charts. */
const roots = [
  "apps.v1.Deployment",
  "apps.v1.StatefulSet",
  "autoscaling.v2.HorizontalPodAutoscaler",
  "batch.v1.Job",
  "core.v1.ConfigMap",
  "core.v1.Pod",
  "core.v1.Secret",
  "core.v1.Service",
  "core.v1.ServiceAccount",
  "networking.v1.Ingress",
  "networking.v1.NetworkPolicy",
  "policy.v1.PodDisruptionBudget",
  "rbac.v1.Role",
  "rbac.v1.RoleBinding",
].map((name) => `io.k8s.api.${name}`);

// biome-ignore lint/suspicious/noExplicitAny: a JSON schema is any JSON.
type Schema = any;

const { definitions, info } = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
const kept: Record<string, Schema> = {};

/** Keeps a definition and those that it names. */
function keep(name: string): void {
  if (kept[name]) return;
  kept[name] = {};
  kept[name] = strict(definitions[name]);
}

function strict(schema: Schema): Schema {
  if (schema.$ref) {
    const name = schema.$ref.replace("#/definitions/", "");
    // Two types that can be written in more than one way.
    if (name.endsWith(".IntOrString")) return { type: ["integer", "string"] };
    if (name.endsWith(".Quantity")) return { type: ["number", "string"] };
    keep(name);
    return { $ref: schema.$ref };
  }
  const made: Schema = {};
  for (const key of ["type", "format", "required", "enum"]) {
    if (schema[key] && schema[key] !== "int-or-string") made[key] = schema[key];
  }
  // A validator does not know Kubernetes' own formats.
  if (made.format && !["int32", "int64", "date-time"].includes(made.format)) delete made.format;
  if (schema.items) made.items = strict(schema.items);
  if (schema.additionalProperties) made.additionalProperties = strict(schema.additionalProperties);
  if (schema.properties) {
    made.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, one]) => [name, strict(one)]),
    );
    made.additionalProperties = false;
  }
  return made;
}

for (const name of roots) keep(name);
const file = fileURLToPath(new URL("kubernetes.schemas.json", import.meta.url));
const version = info.version === "unversioned" ? process.argv[3] : info.version;
writeFileSync(file, `${JSON.stringify({ version, roots, definitions: kept })}\n`);
