// Joins all commands to `genmesh`, runs the one that was asked for, and turns its error into an exit code. Each command is in a
// file of its own.

import { Command, CommanderError, InvalidArgumentError } from "commander";
import type { Peers } from "#common/agreements/peers.ts";
import type { OperatorConfig } from "../config.ts";
import { version } from "../version.ts";
import { accountCommands } from "./account.ts";
import { alertCommands } from "./alert.ts";
import { withExamples } from "./arguments.ts";
import { auditCommands } from "./audit.ts";
import { backupCommands } from "./backup.ts";
import { catalogCommands } from "./catalog.ts";
import { defaultServer, operatorPeers } from "./client.ts";
import { completionCommand } from "./completion.ts";
import { explain, reasonOf } from "./explain.ts";
import { generateCommands } from "./generate.ts";
import { holdCommands } from "./hold.ts";
import { jobCommands } from "./job.ts";
import { keyCommands } from "./key.ts";
import { ledgerCommands } from "./ledger.ts";
import { migrateCommand } from "./migrate.ts";
import { operatorCommands } from "./operator.ts";
import type { Output } from "./output.ts";
import { statusCommand } from "./status.ts";
import { webhookCommands } from "./webhook.ts";

/** The parts that all commands share. A command sets `exitCode` where it found a fault. */
export interface Cli extends Output {
  config: OperatorConfig;
  /** Clients of the server that the option names. They are made at their first use, so that help needs no token. */
  peers(): Peers;
  exitCode: number;
  /** The value of `--server`. */
  readonly server: string | undefined;
}

/** `out` and `err` are the streams of the process or of a test. */
export interface ProgramOptions {
  config: OperatorConfig;
  out(text: string): void;
  err(text: string): void;
}

/** The `genmesh` command. */
export interface Program {
  /** For tests of the documentation. */
  readonly command: Command;
  /** Answers the exit code: 0 after success, 1 after a failure, 2 for invalid arguments. */
  run(args: readonly string[]): Promise<number>;
}

const groups = [
  statusCommand,
  accountCommands,
  auditCommands,
  operatorCommands,
  keyCommands,
  ledgerCommands,
  holdCommands,
  jobCommands,
  webhookCommands,
  alertCommands,
  catalogCommands,
  generateCommands,
  migrateCommand,
  backupCommands,
  completionCommand,
];

/** Makes the `genmesh` command. It calls no server before it is run. */
export function createProgram(options: ProgramOptions): Program {
  /** Found before the arguments are parsed, because parsing stops at the first invalid one. */
  let wantsJson = false;
  const program = withExamples(
    new Command("genmesh").description("Operates a genmesh: accounts, keys, money, jobs, catalog."),
    "status",
    'account create --name "Team A" --usd 5.00 --credits 1000',
    "key create acct_… --scope text --monthly-usd 1.00",
    "job show job_…",
    "hold list",
    "ledger audit",
    "catalog check deploy/catalog.yaml",
    'generate image "a fox in the snow" -o fox.png',
  )
    .option(
      "--server <host:port>",
      `gRPC address of the server (default ${defaultServer}, or GENMESH_*_URL)`,
    )
    .option("--json", "print one JSON object")
    .version(version, "--version", "print the version")
    .configureOutput({
      writeOut: options.out,
      writeErr: (text) => (wantsJson ? undefined : options.err(text)),
    })
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(--help shows how it is called, with examples)")
    .exitOverride();
  const cli: Cli = {
    ...options,
    exitCode: 0,
    get json() {
      return program.opts().json === true;
    },
    get server() {
      return program.opts().server;
    },
    peers: () =>
      operatorPeers(options.config, cli.server, (line) =>
        wantsJson ? undefined : options.err(`genmesh: ${line}\n`),
      ),
  };
  for (const group of groups) group(program, cli);
  inherit(program);
  return {
    command: program,
    async run(args) {
      wantsJson = args.includes("--json");
      try {
        await program.parseAsync(args, { from: "user" });
        return cli.exitCode;
      } catch (error) {
        return failed(cli, error, wantsJson);
      }
    },
  };
}

/** Gives every command the program's options after its own arguments, and the program's streams. */
function inherit(command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(command);
    inherit(child);
  }
}

function failed(cli: Cli, error: unknown, wantsJson: boolean): number {
  // Commander has printed its own text, where it is for people. Help on request is no error.
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    const message = error.message.replace(/^error: /, "");
    // It has not printed what a command's own action found.
    if (!wantsJson && error instanceof InvalidArgumentError) cli.err(`genmesh: ${message}\n`);
    if (wantsJson) cli.err(`${JSON.stringify({ error: { message, reason: "BAD_USAGE" } })}\n`);
    return 2;
  }
  const message = explain(error);
  const reason = reasonOf(error);
  cli.err(
    cli.json
      ? `${JSON.stringify({ error: { message, ...(reason ? { reason } : {}) } })}\n`
      : `genmesh: ${message}\n`,
  );
  return 1;
}
