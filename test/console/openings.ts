import type { Page } from "playwright-core";
import { accountMark } from "./screens.ts";

/** A part of a screen without an address of its own, such as a dialog. Opening it changes nothing, so it can be repeated. */
export interface Opening {
  name: string;
  /** The path of the screen, with {@link accountMark}. */
  path: string;
  open(page: Page): Promise<void>;
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const press = (page: Page, name: string) => button(page, name).first().click();
const dialog = (page: Page) => page.locator("dialog[open]").last();

/** Opens the dialog of the first button of this name. */
const dialogOf = (name: string) => async (page: Page) => {
  await press(page, name);
  await dialog(page).waitFor();
};

/** For a key with all rights that has a job, a file and another key. */
export const keyOpenings: readonly Opening[] = [
  {
    name: "go-to",
    path: "/console/",
    open: async (page) => {
      await page.keyboard.press("Control+k");
      await dialog(page).waitFor();
    },
  },
  {
    name: "menu",
    path: "/console/",
    open: async (page) => {
      const menu = page.getByRole("button", { name: "Menu" });
      if (await menu.isVisible()) await menu.click();
    },
  },
  { name: "create-a-key", path: "/console/keys", open: dialogOf("Create a key") },
  {
    name: "confirm",
    path: "/console/keys",
    open: async (page) => {
      await press(page, "Create a key");
      await dialog(page).getByLabel("Name", { exact: true }).fill("website");
      await press(page, "Create key");
      await page.getByLabel("Your API key").fill("not it");
      await press(page, "Confirm");
      await page.getByText("This is not the API key of your session.").waitFor();
    },
  },
  { name: "edit-a-key", path: "/console/keys", open: dialogOf("Edit") },
  { name: "rotate-a-key", path: "/console/keys", open: dialogOf("Rotate") },
  { name: "revoke-a-key", path: "/console/keys", open: dialogOf("Delete") },
  {
    name: "job",
    path: "/console/jobs",
    open: async (page) => {
      await page.getByRole("rowheader").first().getByRole("link").click();
      await page.locator("#job .facts").waitFor();
    },
  },
  { name: "delete-a-job", path: "/console/jobs", open: dialogOf("Delete") },
  {
    name: "delete-a-file",
    path: "/console/files",
    open: async (page) => {
      await page
        .getByRole("button", { name: /^Delete / })
        .first()
        .click();
      await dialog(page).waitFor();
    },
  },
  {
    name: "request",
    path: "/console/requests",
    open: async (page) => {
      await page.getByRole("rowheader").first().getByRole("link").click();
      await page.locator(".card .facts").waitFor();
    },
  },
  { name: "webhook-secret", path: "/console/webhooks", open: dialogOf("Show the secret") },
  {
    name: "rotate-webhook-secret",
    path: "/console/webhooks",
    open: dialogOf("Rotate the secret"),
  },
];

/** For an operator who looks at an account with a charge, a job and a hold. */
export const operatorOpenings: readonly Opening[] = [
  {
    name: "make-an-account",
    path: "/console/operator/accounts",
    open: dialogOf("Make an account"),
  },
  ...(
    [
      ["top-up", "Grant"],
      ["edit-an-account", "Edit"],
      ["suspend-an-account", "Suspend"],
      ["refund", "Refund"],
      ["take-back", "Take back"],
      ["close-an-account", "Close"],
    ] as const
  ).map(([name, label]) => ({
    name,
    path: `/console/operator/accounts/${accountMark}`,
    open: dialogOf(label),
  })),
  ...(
    [
      ["operator-create-a-key", "Create a key"],
      ["operator-rotate-a-key", "Rotate"],
      ["operator-revoke-a-key", "Delete"],
    ] as const
  ).map(([name, label]) => ({
    name,
    path: `/console/operator/keys?account=${accountMark}`,
    open: dialogOf(label),
  })),
  {
    name: "operator-job",
    path: "/console/operator/jobs",
    open: async (page) => {
      await page.getByRole("rowheader").first().getByRole("link").click();
      await page.locator(".facts").first().waitFor();
    },
  },
  { name: "settle-a-hold", path: "/console/operator/holds", open: dialogOf("Settle") },
  { name: "release-a-hold", path: "/console/operator/holds", open: dialogOf("Release") },
  {
    name: "ledger-audited",
    path: "/console/operator/ledger",
    open: async (page) => {
      await press(page, "Audit now");
      await page.getByText("Every balance is the sum of its entries.").waitFor();
    },
  },
  {
    name: "draft-refused",
    path: "/console/operator/catalog",
    open: async (page) => {
      await page.getByLabel("Catalog (YAML)").fill("models: 7");
      await press(page, "Check");
      await page.getByText("It would be refused. The catalog in force would stay.").waitFor();
    },
  },
];
