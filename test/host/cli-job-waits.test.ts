import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { closedBaseUrl } from "../support/scripted-upstream.ts";
import { until } from "../support/until.ts";
import { tempFolder } from "./process.ts";
import { runCommand, startHostWorld } from "./world.ts";

test("job show says why a queued job waits, and when it is tried again", async () => {
  const folder = await tempFolder();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const file = join(folder.path, "catalog.yaml");
  const baseUrl = await closedBaseUrl();
  await writeFile(
    file,
    `upstreams: { away: { protocol: openai, baseUrl: "${baseUrl}" } }
models: [{ id: image-1, kind: image, upstream: away, creditPrice: 5, sizes: [64x64] }]
`,
  );
  const world = await startHostWorld({ GENMESH_CATALOG: file });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const genmesh = (...args: string[]) => runCommand(world, args);
  const made = await genmesh("account", "create", "--name", "M", "--credits", "9", "--json");
  const { apiKey } = JSON.parse(made.out);
  const post = (path: string, body = {}) =>
    fetch(`${world.mesh.baseUrl}/images/generations${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const answer = await post("", { model: "image-1", prompt: "a boat" });
  expect(answer.status).toBe(202);
  const { id } = (await answer.json()) as { id: string };
  const shown = await until("the job to wait", async () => {
    const { out } = await genmesh("job", "show", id, "--json");
    const found = JSON.parse(out);
    return found.wait?.nextTryAt && found.job.status === "queued" ? found : undefined;
  });
  expect(shown).toMatchObject({
    attempts: 0,
    wait: { reason: "the upstream could not be reached", times: expect.any(Number) },
  });
  expect(shown.events.at(-1).state).toBe("waiting");
  // Between two waits the job is offered to its upstream.
  const out = await until("the job to wait again", async () => {
    const { out } = await genmesh("job", "show", id);
    return /^waits/m.test(out) ? out : undefined;
  });
  expect(out).toMatch(
    /^waits +the upstream could not be reached \(\d+ in all\); next try (20\d\d-|as soon)/m,
  );
  expect(out).not.toContain(new URL(baseUrl).host);

  expect((await post(`/${id}/cancel`)).status).toBe(200);
  const ended = await genmesh("job", "show", id);
  expect(ended.out).toMatch(/^waits +the upstream could not be reached \(\d+ in all\)$/m);
  const { wait } = JSON.parse((await genmesh("job", "show", id, "--json")).out);
  expect(wait).toEqual({ reason: expect.any(String), times: expect.any(Number) });
});
