import { describe, expect, test } from "vitest";
import { findHelms, render } from "./helm.ts";

/** Refused values in the form of `--set`, and the messages. */
const refused: [why: string, values: string[], text: string][] = [
  ["an unknown key", ["replicas=3"], "additional properties 'replicas' not allowed"],
  ["a key that one role has not", ["roles.gateway.replica=3"], "'replica' not allowed"],
  ["a role that is none", ["roles.worker.replicas=3"], "'worker' not allowed"],
  ["a number written as a word", ["defaults.replicas=two"], "got string, want integer"],
  ["a tag as digest", ["image.digest=v1"], "does not match pattern"],
  ["a level that is none", ["config.logLevel=loud"], "value must be one of"],
  ["a negative drain", ["shutdown.drainSeconds=-1"], "minimum"],
  [
    "no stores",
    ["stores.existingSecret="],
    "must name the Secret that holds the address of the database",
  ],
  [
    "one store missing",
    ["stores.existingSecret=", "stores.database.existingSecret=a", "stores.queue.existingSecret=b"],
    "stores.blobs.existingSecret) must name the Secret",
  ],
  [
    "two catalogs",
    ["catalog.existingConfigMap=a", "catalog.existingSecret=b"],
    "three ways to give one file",
  ],
  ["TLS without certificates", ["tls.enabled=true"], "tls.enabled needs certificates"],
  ["certificates without TLS", ["tls.existingSecret=a"], "nothing would use them"],
  [
    "two sources of certificates",
    ["tls.enabled=true", "tls.existingSecret=a", "tls.certManager.enabled=true"],
    "two sources of the same certificates",
  ],
  [
    "cert-manager without an issuer",
    ["tls.enabled=true", "tls.certManager.enabled=true"],
    "must name the issuer",
  ],
  ["an Ingress for every host", ["ingress.enabled=true"], "ingress.enabled needs ingress.hosts"],
  ["a route without a Gateway", ["httpRoute.enabled=true"], "needs httpRoute.parentRefs"],
  ["KEDA without NATS' figures", ["keda.enabled=true"], "keda.enabled needs keda.natsMonitoring"],
  [
    "KEDA and the CPU at once",
    [
      "keda.enabled=true",
      "keda.natsMonitoring=nats:8222",
      "roles.media-worker.autoscaling.enabled=true",
    ],
    "would both set its replicas",
  ],
  ["KEDA upside down", ["keda.minReplicas=9", "keda.maxReplicas=3"], "above keda.maxReplicas"],
  ["an even number of copies", ["stores.queue.replicas=2"], "must be 1, 3 or 5"],
  [
    "an autoscaler upside down",
    ["roles.text.autoscaling.enabled=true", "roles.text.autoscaling.minReplicas=20"],
    "autoscaling of text: minReplicas is above maxReplicas",
  ],
  [
    "an autoscaler without a request",
    ["roles.auth.autoscaling.enabled=true", "roles.auth.resources.requests.cpu=null"],
    "autoscaling of auth goes by CPU and needs resources.requests.cpu",
  ],
  [
    "two budgets",
    ["roles.auth.podDisruptionBudget.minAvailable=1"],
    "takes one of minAvailable and maxUnavailable",
  ],
  [
    "a budget that blocks every drain",
    [
      "roles.auth.podDisruptionBudget.minAvailable=2",
      "roles.auth.podDisruptionBudget.maxUnavailable=null",
    ],
    "minAvailable 2 of 2 replicas would let no node be drained",
  ],
  [
    "a scraper that is not let in",
    ["monitoring.serviceMonitor.enabled=true"],
    "needs networkPolicy.metricsFrom",
  ],
];

// One major version is enough. Both evaluate schema and templates by the same packages, and render.test.ts renders with each.
const newest = (await findHelms()).sort((a, b) => b.name.localeCompare(a.name)).slice(0, 1);

describe.each(newest)("$name", (helm) => {
  test.each(refused)("refuses %s", async (_why, values, text) => {
    const settings = ["stores.existingSecret=x", ...values].flatMap((value) => ["--set", value]);
    await expect(render(helm, "genmesh", ...settings)).rejects.toThrow(text);
  });

  test("refuses what the backing does not know", async () => {
    const rendered = render(helm, "genmesh-backing", "--set", "mongodb.replicas=3");
    await expect(rendered).rejects.toThrow("'replicas' not allowed");
  });
});
