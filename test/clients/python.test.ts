import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { startWorld } from "../e2e/world.ts";

const run = promisify(execFile);
/** Where to find a Python that has the client; default the one on the path. */
const python = process.env.PYTHON ?? "python3";
const script = fileURLToPath(new URL("openai_client.py", import.meta.url));
const why = await run(python, ["-c", "import openai"]).then(
  () => undefined,
  () => `needs \`${python} -c "import openai"\` to work (pip install openai; PYTHON names another)`,
);
if (why !== undefined) process.stderr.write(`skipped: the Python client ${why}\n`);
const world = why === undefined ? await startWorld() : undefined;
afterAll(() => world?.[Symbol.asyncDispose]());

test("the official Python client, unmodified", async ({ skip }) => {
  if (!world) return skip(why);
  const caller = await world.caller();
  const { stdout } = await run(python, [script, world.baseUrl, caller.key]);
  expect(JSON.parse(stdout)).toEqual({
    create: "hello",
    stream: ["good day", "response.completed"],
    helper: true,
    tool: ["get_weather", true, true],
    compact: true,
    chat: "hello",
    chat_stream: ["hello", 1],
    models: true,
    errors: {
      key: ["AuthenticationError", 401, "invalid_api_key"],
      model: ["BadRequestError", 400, "model_not_found"],
      n: ["BadRequestError", 400, "unsupported_parameter"],
    },
    image: true,
  });
}, 30_000);
