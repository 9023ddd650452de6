import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { startWorld } from "../e2e/world.ts";

const run = promisify(execFile);
/** A Python that has the client. By default the one on the path. */
const python = process.env.PYTHON ?? "python3";
const script = fileURLToPath(new URL("anthropic_client.py", import.meta.url));
const why = await run(python, ["-c", "import anthropic"]).then(
  () => undefined,
  () =>
    `needs \`${python} -c "import anthropic"\` to work (pip install anthropic; PYTHON names another)`,
);
if (why !== undefined) process.stderr.write(`skipped: Anthropic's Python client ${why}\n`);
const world = why === undefined ? await startWorld() : undefined;
afterAll(() => world?.[Symbol.asyncDispose]());

test("Anthropic's official Python client, unmodified", async ({ skip }) => {
  if (!world) return skip(why);
  const caller = await world.caller();
  const { stdout } = await run(python, [script, world.baseUrl.replace(/\/v1$/, ""), caller.key]);
  expect(JSON.parse(stdout)).toEqual({
    create: ["hello", "end_turn", 1],
    stream: ["hello", "end_turn"],
    tool: ["get_weather", true, true],
    count: true,
    models: true,
    errors: {
      key: ["AuthenticationError", 401, "authentication_error"],
      model: ["NotFoundError", 404, "not_found_error"],
      bound: ["BadRequestError", 400, "invalid_request_error"],
    },
  });
});
