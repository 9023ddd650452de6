import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { thisCheckout } from "../../../test/support/checkout.ts";
import { houseFiles } from "../../../test/support/own-files.ts";
import { attributeNames, metricNames, spanRules } from "./schema.ts";

const sources = houseFiles().map((file) => ({
  file,
  text: readFileSync(join(thisCheckout, file), "utf8"),
}));
const rules = Object.entries(spanRules);

describe("the schema", () => {
  test("has every attribute once, and each for some span or metric", () => {
    expect([...attributeNames].sort()).toEqual([...attributeNames]);
    expect(new Set(attributeNames).size).toBe(attributeNames.length);
    const used = new Set<string>([
      ...rules.flatMap(([, { attributes }]) => attributes),
      ...Object.values(metricNames).flatMap(({ attributes }) => Object.values(attributes)),
    ]);
    expect(attributeNames.filter((name) => !used.has(name))).toEqual([]);
  });

  test("has no name of what belongs to callers", () => {
    const theirs =
      /^(url\.(full|path|query)|client\.|user|network\.peer|.*(prompt|message|input\.messages|header|key)s?$)/;
    expect(attributeNames.filter((name) => theirs.test(name) && name !== "url.scheme")).toEqual([]);
  });

  test("names every span and attribute that the code tells, and no other", () => {
    const families = new Set<string>();
    const attributes = new Set<string>();
    for (const { file, text } of sources) {
      if (file.endsWith("telemetry/schema.ts")) continue;
      for (const [, name = ""] of text.matchAll(/\bfamily: "([^"]+)"/g)) families.add(name);
      for (const name of attributeNames) if (text.includes(`"${name}"`)) attributes.add(name);
    }
    expect([...families].sort()).toEqual(rules.map(([name]) => name).sort());
    const renamed = Object.values(metricNames).flatMap((one) => Object.values(one.attributes));
    const told = new Set<string>([...attributes, ...renamed]);
    expect(attributeNames.filter((name) => !told.has(name))).toEqual([]);
  });

  test("renames metrics that exist, by labels that they have", () => {
    for (const [name, { attributes }] of Object.entries(metricNames)) {
      const registered = new RegExp(`\\.(counter|gauge|histogram)\\(\\s*"${name}"`);
      const source = sources.find(({ text }) => registered.test(text));
      expect(source?.file, name).toBeDefined();
      for (const label of Object.keys(attributes)) expect(source?.text).toContain(`"${label}"`);
    }
    const names = Object.values(metricNames).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

test("the SDK is loaded by the file of its own alone, and this one only where a collector is configured", () => {
  const isSdk = /from "@opentelemetry\/(?!api")/;
  const importers = sources.filter(({ text }) => isSdk.test(text)).map(({ file }) => file);
  expect(importers.sort()).toEqual([
    "services/host/telemetry-metrics.ts",
    "services/host/telemetry.ts",
  ]);
  const statically = sources.filter(
    ({ file, text }) =>
      !importers.includes(file) && /from "[^"]*\/telemetry(-metrics)?\.ts"/.test(text),
  );
  expect(statically.map(({ file }) => file)).toEqual([]);
});
