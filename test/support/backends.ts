import { afterAll } from "vitest";

/** A server that the product can use in place of an embedded store. */
export type BackendName = "mongodb" | "nats" | "s3";

/** The address of a server, or the reason why there is none. */
export interface Backend {
  /** Undefined where there is no server. Tests that need it are skipped. */
  url: string | undefined;
  /** For the title of skipped tests: the reason. Otherwise empty. */
  note: string;
}

interface Recipe {
  /** Names a server that runs already. */
  urlVariable: string;
  /** Names another image than the usual one. */
  imageVariable: string;
  image: string;
  port: number;
  command: string[];
  /** A text in the server's log once it is ready. */
  readyText: RegExp;
  /** A command that is run in the container once the server is ready. */
  setUp?: string[];
  url(address: string): string;
}

const initiate = "rs.initiate({_id: 'rs0', members: [{_id: 0, host: '127.0.0.1:27017'}]})";
const recipes: Record<BackendName, Recipe> = {
  mongodb: {
    urlVariable: "GENMESH_TEST_MONGODB_URL",
    imageVariable: "GENMESH_TEST_MONGODB_IMAGE",
    image: "mongo:8.0",
    port: 27017,
    command: ["--replSet", "rs0", "--bind_ip_all"],
    readyText: /Waiting for connections/,
    setUp: [
      "mongosh",
      "--quiet",
      "--eval",
      `${initiate}; while (!db.hello().isWritablePrimary) {}`,
    ],
    url: (address) => `mongodb://${address}/?directConnection=true`,
  },
  nats: {
    urlVariable: "GENMESH_TEST_NATS_URL",
    imageVariable: "GENMESH_TEST_NATS_IMAGE",
    image: "nats:2.12-alpine",
    port: 4222,
    command: ["--jetstream"],
    readyText: /Server is ready/,
    url: (address) => `nats://${address}`,
  },
  s3: {
    urlVariable: "GENMESH_TEST_S3_URL",
    imageVariable: "GENMESH_TEST_S3_IMAGE",
    image: "minio/minio:RELEASE.2025-04-22T22-12-26Z",
    port: 9000,
    command: ["server", "/data"],
    readyText: /API:/,
    url: (address) => `s3+http://minioadmin:minioadmin@${address}/genmesh-test`,
  },
};

/**
 * Finds a server: by a URL in the environment, or as a container that lives as long as the calling test file. Where there is neither,
 * standard error shows the reason. With GENMESH_REQUIRE_BACKENDS=1 that is an error. It is called while a test file is being collected.
 */
export function findBackend(name: BackendName): Promise<Backend> {
  const known = found.get(name);
  if (known) return known;
  const finding = look(name);
  found.set(name, finding);
  return finding;
}

const found = new Map<BackendName, Promise<Backend>>();

async function look(name: BackendName): Promise<Backend> {
  const recipe = recipes[name];
  const url = process.env[recipe.urlVariable];
  if (url) return { url, note: "" };
  try {
    return { url: await startContainer(recipe), note: "" };
  } catch (error) {
    const reason = `wants ${recipe.urlVariable}, or Docker: ${(error as Error).message}`;
    if (process.env.GENMESH_REQUIRE_BACKENDS === "1") throw new Error(`${name} ${reason}`);
    process.stderr.write(`skipped: ${name} ${reason}\n`);
    return { url: undefined, note: ` (skipped: ${reason})` };
  }
}

async function startContainer(recipe: Recipe): Promise<string> {
  const { GenericContainer, Wait } = await import("testcontainers");
  const image = process.env[recipe.imageVariable] ?? recipe.image;
  const container = await new GenericContainer(image)
    .withExposedPorts(recipe.port)
    .withCommand(recipe.command)
    .withWaitStrategy(Wait.forLogMessage(recipe.readyText))
    .start();
  afterAll(async () => {
    await container.stop();
  });
  if (recipe.setUp) {
    const { exitCode, output } = await container.exec(recipe.setUp);
    if (exitCode !== 0) throw new Error(`${image} could not be set up: ${output}`);
  }
  return recipe.url(`${container.getHost()}:${container.getMappedPort(recipe.port)}`);
}
