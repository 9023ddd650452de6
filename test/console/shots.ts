// `npm run console:shots`: makes images of every screen of the console, at three widths and in both themes, for a person to look at. It
// makes a genmesh with a month of use and the built-in models. Before that it prints the time that each list takes. With `-- --times` it
// does only that.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { createLogger } from "#kit/base/logger.ts";
import { envToConfig } from "../../services/host/config.ts";
import { startRoleAll } from "../../services/host/role-all.ts";
import { openBrowser, openPage } from "../support/browser.ts";
import { jumpClock } from "../support/jump-clock.ts";
import { listTimes, timesTable } from "./list-times.ts";
import { useForAMonth } from "./month-of-use.ts";
import { keyOpenings, type Opening, operatorOpenings } from "./openings.ts";
import { accountMark, keyScreens, operatorScreens, signIn, untilBuilt, visit } from "./screens.ts";

const folder = fileURLToPath(new URL("../../console-shots/", import.meta.url));
const widths = [1280, 768, 390];
const operatorToken = "operator-token-of-the-console-shots";
const dayMs = 86_400_000;
const isTimesOnly = process.argv.includes("--times");
/** Screens that load a list when they open. */
const keyLists = ["usage", "requests", "jobs", "files", "keys", "billing", "webhooks", "models"];
const operatorLists = [
  "accounts",
  "keys",
  "jobs",
  "holds",
  "margin",
  "catalog",
  "notices",
  "upstreams",
  "audit",
];

/** All except those of holds, because no hold is open at that time. */
const openingsOfOperator = operatorOpenings.filter(({ name }) => !name.endsWith("-a-hold"));

/** Results of the playground. They change other screens, so their images are made after those. */
const playgrounds: readonly Opening[] = [
  {
    name: "playground-answer",
    path: "/console/playground?kind=chat",
    open: async (page) => {
      await page.getByLabel("Message").fill("Why is the sky blue?");
      await press(page, "Send");
      await page.locator(".charge").first().waitFor();
    },
  },
  {
    name: "playground-image",
    path: "/console/playground?kind=image",
    open: async (page) => {
      await page.getByLabel("Prompt", { exact: true }).fill("A lighthouse at dusk, calm sea");
      await press(page, "Generate");
      await page
        .getByText(/^charged/)
        .first()
        .waitFor();
      await page.locator(".outputs img").first().waitFor();
    },
  },
];

const press = (page: Page, name: string) =>
  page.getByRole("button", { name, exact: true }).first().click();

async function main(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), "genmesh-shots-"));
  if (!isTimesOnly) {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
  }
  try {
    await takeAll(dataDir);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function takeAll(dataDir: string): Promise<void> {
  const config = envToConfig({
    PORT: "0",
    GRPC_PORT: "0",
    GENMESH_OPS_PORT: "0",
    GENMESH_DATA_DIR: dataDir,
    GENMESH_ADMIN_TOKEN: operatorToken,
    GENMESH_ALLOW_PRIVATE_REFERENCES: "1",
  });
  const clock = jumpClock();
  clock.set(-30 * dayMs);
  const log = createLogger("error", process.stderr);
  const { signal } = new AbortController();
  await using mesh = await startRoleAll(config, { log, signal, clock });
  const { origin } = new URL(mesh.baseUrl);
  const { secret: owner, accountId } = await useForAMonth(mesh, (ms) => clock.set(ms));
  await untilBuilt(origin);
  const browser = await openBrowser();
  await tellTimes(browser, origin, owner);
  if (isTimesOnly) return browser.close();
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of widths) {
      const { page, close } = await openPage(browser, { width, colorScheme });
      const shoot = async (name: string) => {
        const path = join(folder, `${name}-${width}-${colorScheme}.png`);
        await page.screenshot({ path, fullPage: true });
      };
      await page.goto(`${origin}/console/`);
      await page.locator("h1").waitFor();
      await shoot("sign-in");
      await signIn(page, origin, owner);
      const shootAll = async (screens: readonly string[], openings: readonly Opening[]) => {
        for (const path of screens) {
          await visit(page, origin, path.replace(accountMark, accountId));
          await shoot(nameOf(path));
        }
        for (const { name, path, open } of openings) {
          await visit(page, origin, path.replace(accountMark, accountId));
          await open(page);
          await shoot(name);
        }
      };
      await shootAll(keyScreens, [...keyOpenings, ...playgrounds]);
      await page.context().clearCookies();
      await signIn(page, origin, operatorToken);
      await shootAll(operatorScreens, openingsOfOperator);
      await close();
    }
  }
  await browser.close();
}

async function tellTimes(browser: Browser, origin: string, owner: string): Promise<void> {
  const { page, close } = await openPage(browser);
  await signIn(page, origin, owner);
  const of = await listTimes(
    page,
    "/console/",
    keyLists.map((name) => `/console/${name}`),
  );
  process.stdout.write(`${timesTable(of)}\n`);
  await page.context().clearCookies();
  await signIn(page, origin, operatorToken);
  const operators = operatorLists.map((name) => `/console/operator/${name}`);
  const [home = "", ...others] = operators;
  const ofOperators = await listTimes(page, home, others);
  ofOperators.push(...(await listTimes(page, others[0] ?? "", [home])));
  process.stdout.write(`${timesTable(ofOperators)}\n`);
  await close();
}

const nameOf = (path: string) =>
  path
    .replace("/console/", "")
    .replace(`/${accountMark}`, "-one")
    .replace(/\W+/g, "-")
    .replace(/-$/, "") || "overview";

await main();
