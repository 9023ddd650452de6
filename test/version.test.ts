import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { createProgram } from "../services/host/cli/program.ts";
import { envToOperatorConfig } from "../services/host/config.ts";
import { version } from "../services/host/version.ts";
import { thisCheckout } from "./support/checkout.ts";

const read = (file: string) => readFileSync(join(thisCheckout, file), "utf8");

test("the package, its lock, the image and the charts have one semantic version", () => {
  const lock = JSON.parse(read("package-lock.json"));
  const charts = ["genmesh", "genmesh-backing"].map((name) =>
    parse(read(`charts/${name}/Chart.yaml`)),
  );
  const [, image] = /^ARG VERSION=(.+)$/m.exec(read("deploy/Dockerfile")) ?? [];
  const all = [lock.version, lock.packages[""].version, image, charts[0].appVersion];
  expect([...all, ...charts.map((chart) => chart.version)]).toEqual(Array(6).fill(version));
  expect(version).toMatch(/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/);
});

test("genmesh --version prints it alone", async () => {
  let out = "";
  const program = createProgram({
    config: envToOperatorConfig({}),
    out: (text) => {
      out += text;
    },
    err: () => {},
  });
  expect(await program.run(["--version"])).toBe(0);
  expect(out).toBe(`${version}\n`);
});
