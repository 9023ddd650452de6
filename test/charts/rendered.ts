import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { root } from "./helm.ts";

/** The committed renderings of charts/genmesh. */
export const examples = [
  "minimal",
  "evaluation",
  "production",
  "everything",
  "external-secrets",
] as const;

/** A Kubernetes object with the fields that tests read. */
// biome-ignore lint/suspicious/noExplicitAny: what is looked for differs from kind to kind.
export type Manifest = any;

/** The objects of a committed rendering. */
export function rendered(example: string, chart = "genmesh"): Manifest[] {
  const file = join(root, "charts", chart, "examples", `${example}.rendered.yaml`);
  return parseAllDocuments(readFileSync(file, "utf8")).map((document) => {
    if (document.errors.length > 0) throw new Error(`${file}: ${document.errors[0]?.message}`);
    return document.toJS() as Manifest;
  });
}

/** The objects of one kind. */
export function ofKind(manifests: Manifest[], kind: string): Manifest[] {
  return manifests.filter((one) => one.kind === kind);
}

/** The pods that would run, with the name of the object that makes them. */
export function podsOf(
  manifests: Manifest[],
): { name: string; labels: Manifest; spec: Manifest }[] {
  return manifests.flatMap((one) => {
    const pod = one.kind === "Pod" ? one : one.spec?.template;
    const runs = ["Deployment", "StatefulSet", "Job", "Pod"].includes(one.kind);
    return runs
      ? [{ name: `${one.kind} ${one.metadata.name}`, labels: pod.metadata.labels, spec: pod.spec }]
      : [];
  });
}

/** Does a selector's `matchLabels` choose these labels? */
export function selects(matchLabels: Record<string, string>, labels: Record<string, string>) {
  return Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
}
