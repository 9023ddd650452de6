import { Command } from "commander";
import type { Peers } from "#kit/peers.ts";
import type { OperatorConfig } from "../config.ts";
import { accountCommands } from "./account.ts";
import { catalogCommands } from "./catalog.ts";
import { defaultServer, operatorPeers } from "./client.ts";
import { keyCommands } from "./key.ts";
import { ledgerCommands } from "./ledger.ts";
import type { Output } from "./output.ts";

/** What the commands share. Each sets `exitCode` where it found what must not be. */
export interface Cli extends Output {
  config: OperatorConfig;
  /** Clients of the server that was named; made at the first use, so that help needs no token. */
  peers(): Peers;
  exitCode: number;
}

/** What a program is made of; `out` and `err` are the process's streams, or a test's. */
export interface ProgramOptions {
  config: OperatorConfig;
  out(text: string): void;
  err(text: string): void;
}

/** The `genmesh` command. */
export function createProgram(options: ProgramOptions): { run(args: string[]): Promise<number> } {
  const program = new Command("genmesh")
    .description("Operates a genmesh: accounts, keys, money, catalog.")
    .option(
      "--server <host:port>",
      `gRPC address of the server (default ${defaultServer}, or GENMESH_*_URL)`,
    )
    .option("--json", "print one JSON object")
    .configureOutput({ writeOut: options.out, writeErr: options.err })
    .showHelpAfterError("(--help shows how it is called, with examples)")
    .addHelpText("after", examples)
    .exitOverride();
  const cli: Cli = {
    ...options,
    exitCode: 0,
    get json() {
      return program.opts().json === true;
    },
    peers: () => operatorPeers(options.config, program.opts().server),
  };
  for (const group of [accountCommands, keyCommands, ledgerCommands, catalogCommands])
    group(program, cli);
  inherit(program);
  return {
    async run(args) {
      await program.parseAsync(args, { from: "user" });
      return cli.exitCode;
    },
  };
}

/** Every command takes --server and --json behind its own words, and writes where the program does. */
function inherit(command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(command);
    inherit(child);
  }
}

const examples = `
Examples:
  $ npx genmesh account create --name "Team A" --usd-micros 5000000 --credits 1000
  $ npx genmesh key create acct_… --scope text --monthly-usd-micros 1000000
  $ npx genmesh ledger audit
  $ npx genmesh catalog check deploy/catalog.yaml`;
