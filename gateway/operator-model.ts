// Shows a model of the catalog to operators, with its upstreams and costs. `models.ts` shows it to callers.

import { storedKeyPrefix } from "#kit/upstream/key-file.ts";
import type { Model, Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { listPricing } from "./model-prices.ts";
import { toCatalogEntry } from "./models.ts";

/**
 * A model of the catalog for operators: what callers see of it, and beside that where it is served, and the prices that the operator
 * pays there.
 */
export function operatorModel(model: Model, snapshot: Snapshot) {
  const { spec } = model;
  const cost = spec.case === "chat" ? spec.value.upstreamCost : undefined;
  const names = [model.upstream, ...model.fallbackUpstreams];
  const lanes = names.map((name, at) => {
    const share = model.shares.find((one) => one.upstream === name);
    // Without shares each upstream is a level of its own.
    const { level, weight, upstreamModel } = share ?? { level: at, weight: 1, upstreamModel: "" };
    const { apiKeyEnv = "", apiKeyFile = "", apiKeyStored = "" } = snapshot.upstreams[name] ?? {};
    const key = apiKeyEnv || apiKeyFile || (apiKeyStored && storedKeyPrefix + apiKeyStored) || null;
    return { name, key, level, weight, upstreamModel };
  });
  return {
    ...toCatalogEntry(model, snapshot),
    active: model.active,
    upstreamCost: cost ? listPricing(cost) : null,
    upstreams: names,
    // Keys by the names of their places. No value is read here.
    lanes: lanes.map(({ name, key, level, weight, upstreamModel }) => {
      const ofLevel = lanes.filter((one) => one.level === level);
      const all = ofLevel.reduce((sum, one) => sum + one.weight, 0);
      const ownModel = upstreamModel || model.upstreamModel || model.id;
      return { name, key, level: level + 1, share: weight / all, model: ownModel };
    }),
  };
}
