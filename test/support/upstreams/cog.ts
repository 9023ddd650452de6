import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../free-port.ts";
import { until } from "../until.ts";

const run = promisify(execFile);

/** A Python that has cog. By default the one on the path. */
const python = process.env.PYTHON ?? "python3";

/** The reason why cog cannot be run here. Undefined where it can. */
export const noCog: string | undefined = await run(python, ["-c", "import cog, coglet"]).then(
  () => undefined,
  () =>
    `needs \`${python} -c "import cog, coglet"\` to work (pip install cog coglet; PYTHON names another)`,
);

// biome-ignore lint/suspicious/noExplicitAny: what cog says of a prediction.
type Said = any;

/** The last states of a prediction. */
const ends = ["succeeded", "failed", "canceled"];

/**
 * A model that cog really runs, behind the paths of Replicate's API. cog answers no GET, so a look finds the last message to its webhook.
 * Ids, `urls` and the models' paths are the front's. States, output, logs and errors are cog's own.
 */
export interface CogFront extends AsyncDisposable {
  /** Ends in /v1. */
  baseUrl: string;
  /** The last message of cog for each prediction, in the order of submission. */
  predictions: { id: string; input: Said; said: Said }[];
}

/** Starts both, with a predictor's file and the image that it answers with. */
export async function startCog(options: { predictor: string; png: Buffer }): Promise<CogFront> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "genmesh-cog-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await copyFile(options.predictor, join(folder, "predict.py"));
  await writeFile(join(folder, "picture.png"), options.png);

  const cogUrl = `http://127.0.0.1:${await freePort()}`;
  const predictions: CogFront["predictions"] = [];
  const files = new Map<string, Buffer>();
  const documentOf = ({ id, input, said }: CogFront["predictions"][number]) => {
    const at = `${front.baseUrl}/predictions/${id}`;
    return { ...said, id, input, urls: { get: at, cancel: `${at}/cancel` } };
  };
  const tell = (path: string, method: string, body: object, headers = {}) =>
    fetch(`${cogUrl}${path}`, {
      method,
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const answerTo = async (asked: IncomingMessage): Promise<[number, object | Buffer]> => {
    const { method, url: path = "" } = asked;
    const body = Buffer.concat(await asked.toArray());
    const [, version, area = "", id = ""] = path.split("/");
    const prediction = predictions.find((one) => one.id === id);
    if (version === "files") {
      if (method === "PUT") files.set(path, body);
      const found = files.get(path);
      return found ? [200, found] : [404, {}];
    }
    if (version === "said" && prediction) {
      // cog waits only for the answer to its last message. An earlier message of a prediction can arrive after the last.
      if (!ends.includes(prediction.said.status)) prediction.said = JSON.parse(body.toString());
      return [200, {}];
    }
    if (method === "POST" && area === "models") {
      const { input } = JSON.parse(body.toString());
      const made = { id: randomBytes(13).toString("hex"), input, said: {} as Said };
      predictions.push(made);
      const webhook = `${front.origin}/said/prediction/${made.id}`;
      const prefer = { prefer: "respond-async" };
      const answer = await tell(`/predictions/${made.id}`, "PUT", { input, webhook }, prefer);
      const said = await answer.json();
      // The webhook may have had further messages meanwhile.
      if (made.said.status === undefined) made.said = said;
      return [answer.ok ? 201 : answer.status, documentOf(made)];
    }
    if (area !== "predictions" || !prediction) return [404, { detail: "not found" }];
    if (method === "POST") await tell(`/predictions/${id}/cancel`, "POST", {});
    return [200, documentOf(prediction)];
  };
  const server = createServer(async (asked, answer) => {
    const [status, body] = await answerTo(asked).catch(() => [502, {}] as const);
    answer.statusCode = status;
    if (Buffer.isBuffer(body)) answer.setHeader("content-type", "image/png").end(body);
    else answer.setHeader("content-type", "application/json").end(JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const front = { origin, baseUrl: `${origin}/v1` };

  const words = [
    "-m",
    "cog.server.http",
    "--host",
    "127.0.0.1",
    "--upload-url",
    `${origin}/files/`,
  ];
  const path = `${await folderOf(python)}:${process.env.PATH}`;
  const child = spawn(python, words, {
    cwd: folder,
    stdio: "ignore",
    // cog starts its worker with the `python` of the path.
    env: {
      ...{ PATH: path, HOME: folder, PORT: new URL(cogUrl).port },
      COG_PREDICT_TYPE_STUB: "predict.py:Predictor",
    },
  });
  stack.defer(async () => {
    if (child.exitCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  });
  await until("the model to be set up", async () => {
    const answer = await fetch(`${cogUrl}/health-check`).catch(() => undefined);
    return ((await answer?.json()) as Said)?.status === "READY";
  });
  const owned = stack.move();
  return {
    baseUrl: front.baseUrl,
    predictions,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function folderOf(program: string): Promise<string> {
  const { stdout } = await run(program, ["-c", "import sys; print(sys.executable)"]);
  return dirname(stdout.trim());
}
