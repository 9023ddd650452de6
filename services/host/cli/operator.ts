// Adds the commands `genmesh operator …`, which manage the people who sign in to the console by name.

import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { operatorDocument, setUpPath } from "#common/documents/operator-document.ts";
import type { NewTotp, Operator } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { ConfigError } from "../env.ts";
import { withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { defaultBaseUrl } from "./generate.ts";
import { printFacts, printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";
import { openSecretFile, type SecretFileOption, secretFileOption } from "./secret-file-option.ts";

interface PasswordOption {
  passwordFile?: string;
}

/** Adds `operator`: who signs in to the console by name. */
export function operatorCommands(program: Command, cli: Cli): void {
  const operator = withExamples(
    program
      .command("operator")
      .description("operators who sign in to the console by name, with a second factor"),
    "operator add anna",
    "operator list",
  );
  withExamples(
    secretFileOption(
      passwordFileOption(
        operator
          .command("add <name>")
          .description("add an operator; prints a link to set up the password and second factor"),
      ),
    ),
    "operator add anna",
    "operator add anna --password-file password.txt --secret-file second-factor.txt",
  ).action((name: string, options: PasswordOption & SecretFileOption) => add(cli, name, options));
  withExamples(
    operator.command("list").description("all operators who sign in by name"),
    "operator list",
  ).action(() => list(cli));
  for (const disabled of [true, false]) {
    const word = disabled ? "disable" : "enable";
    const description = disabled
      ? "let an operator sign in no more, and end the operator's sessions"
      : "let a disabled operator sign in again";
    withExamples(
      operator.command(`${word} <name>`).description(description),
      `operator ${word} anna`,
    ).action((name: string) => setState(cli, name, disabled));
  }
  withExamples(
    passwordFileOption(
      operator
        .command("reset-password <name>")
        .description("set a password, or print a link to set one; ends the operator's sessions"),
    ),
    "operator reset-password anna",
    "operator reset-password anna --password-file password.txt",
  ).action((name: string, options: PasswordOption) => resetPassword(cli, name, options));
  withExamples(
    secretFileOption(
      operator
        .command("reset-totp <name>")
        .description("replace a lost second factor and its recovery codes; ends the sessions"),
    ),
    "operator reset-totp anna",
  ).action((name: string, options: SecretFileOption) => resetTotp(cli, name, options));
  withExamples(
    operator.command("remove <name>").description("remove an operator, and end the sessions"),
    "operator remove anna",
  ).action((name: string) => remove(cli, name));
}

/** A password is no argument, because others see a machine's arguments. */
function passwordFileOption(command: Command): Command {
  return command.option(
    "--password-file <file>",
    "the password is this file's first line, of 12 to 200 characters; without it a link is printed",
  );
}

/** The password of the file, or "" where none is named. */
async function readPassword({ passwordFile: path }: PasswordOption): Promise<string> {
  if (path === undefined) return "";
  const [password = ""] = (await readFile(path, "utf8")).split(/\r?\n/, 1);
  if (password === "") throw new ConfigError(`the first line of ${path} is empty`);
  return password;
}

async function add(
  cli: Cli,
  name: string,
  options: PasswordOption & SecretFileOption,
): Promise<void> {
  const password = await readPassword(options);
  if (password === "" && options.secretFile !== undefined)
    throw new ConfigError("--secret-file needs --password-file: without it there is no secret yet");
  await using file = await openSecretFile(options);
  const { operator, setUpToken, totp } = await auditedByCli(
    cli,
    { action: "operator.add" },
    () => cli.peers().auth.addOperator({ name, password }),
    (made) => ({ target: made.operator?.name }),
  );
  if (totp) await file?.keep(textOf(totp));
  show(cli, operator, { setUpToken, totp, ...options });
}

async function setState(cli: Cli, name: string, disabled: boolean): Promise<void> {
  const action = disabled ? "operator.disable" : "operator.enable";
  const { operator } = await auditedByCli(cli, { action, target: name }, () =>
    cli.peers().auth.setOperatorState({ name, disabled }),
  );
  if (cli.json) return show(cli, operator);
  cli.out(`${operator?.name} is ${disabled ? "disabled" : "enabled"}.\n`);
}

async function resetPassword(cli: Cli, name: string, options: PasswordOption): Promise<void> {
  const password = await readPassword(options);
  const { operator, setUpToken } = await auditedByCli(
    cli,
    { action: "operator.reset_password", target: name },
    () => cli.peers().auth.resetOperatorPassword({ name, password }),
  );
  show(cli, operator, { setUpToken });
}

async function resetTotp(cli: Cli, name: string, options: SecretFileOption): Promise<void> {
  await using file = await openSecretFile(options);
  const { operator, totp } = await auditedByCli(
    cli,
    { action: "operator.reset_totp", target: name },
    () => cli.peers().auth.resetOperatorTotp({ name }),
  );
  if (totp) await file?.keep(textOf(totp));
  show(cli, operator, { totp, ...options });
}

async function remove(cli: Cli, name: string): Promise<void> {
  await auditedByCli(cli, { action: "operator.remove", target: name }, () =>
    cli.peers().auth.removeOperator({ name }),
  );
  if (cli.json) return printJson(cli, { name, removed: true });
  cli.out(`${name} is removed.\n`);
}

async function list(cli: Cli): Promise<void> {
  const { operators } = await cli.peers().auth.listOperators({});
  const shown = operators.map(operatorDocument);
  if (cli.json) return printJson(cli, { operators: shown });
  printTable(
    cli,
    ["name", "state", "last sign-in", "recovery codes", "link until", "codes refused until"],
    shown.map((one) => [
      ...[one.name, one.state, one.signedInAt ?? "–", `${one.recoveryCodes}`],
      ...[one.linkEndsAt ?? "–", one.codesRefusedUntil ?? "–"],
    ]),
    "no operators",
  );
}

interface Shown extends SecretFileOption {
  setUpToken?: string;
  totp?: NewTotp | undefined;
}

/** An operator with what is shown this once: the link, or the second factor or its file. */
function show(
  cli: Cli,
  operator: Operator | undefined,
  { setUpToken = "", totp, secretFile }: Shown = {},
): void {
  if (!operator) throw new Error("auth answered no operator and did not refuse");
  const link = setUpToken === "" ? undefined : linkOf(cli, operator.name, setUpToken);
  const shown = operatorDocument(operator);
  if (cli.json) {
    const secret = totp && { totp: { uri: totp.uri, recoveryCodes: totp.recoveryCodes } };
    const made = totp && (secretFile === undefined ? secret : { secretFile });
    printJson(cli, { ...shown, ...(link ? { link } : {}), ...made });
    return;
  }
  printFacts(cli, [
    ["name", shown.name],
    ["state", shown.state],
    ...(link ? [["link, for 24 hours", link] as [string, string]] : []),
    ...(totp && secretFile !== undefined ? [["secret in", secretFile] as [string, string]] : []),
  ]);
  if (totp && secretFile === undefined) cli.out(`\n${textOf(totp)}\n`);
}

/** The page of the console, at the address that GENMESH_BASE_URL names. */
function linkOf(cli: Cli, name: string, token: string): string {
  const base = (cli.config.baseUrl ?? defaultBaseUrl).replace(/\/+$/, "").replace(/\/v1$/, "");
  return base + setUpPath(name, token);
}

/** A second factor for an authenticator, and the recovery codes, a line each. */
function textOf({ uri, recoveryCodes }: NewTotp): string {
  return [uri, ...recoveryCodes].join("\n");
}
