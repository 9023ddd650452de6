// Adds `genmesh completion`, which prints a shell's completion of all commands and options.

import { Argument, type Command } from "commander";
import { withExamples } from "./arguments.ts";
import type { Cli } from "./program.ts";

export function completionCommand(program: Command, cli: Cli): void {
  withExamples(
    program
      .command("completion")
      .description("the script with which a shell completes commands and options")
      .addArgument(new Argument("<shell>").choices(Object.keys(scripts))),
    "completion bash > /etc/bash_completion.d/genmesh",
    'completion zsh > "$' + '{fpath[1]}/_genmesh"',
    "completion fish > ~/.config/fish/completions/genmesh.fish",
  ).action((shell: keyof typeof scripts) => cli.out(scripts[shell](nodesOf(program))));
}

/** A command, by the words that lead to it. */
interface Node {
  /** Below the program: `key create`. "" for the program. */
  path: string;
  commands: readonly { name: string; description: string }[];
  /** `--name` of each option, those of the program included. */
  options: readonly { name: string; description: string }[];
}

function nodesOf(command: Command, path = "", above: Node["options"] = []): Node[] {
  const own = command.options.flatMap(({ long, description }) =>
    long ? [{ name: long, description }] : [],
  );
  const options = [...own, ...above];
  const commands = command.commands.map((child) => ({
    name: child.name(),
    description: child.description(),
  }));
  const below = command.commands.flatMap((child) =>
    nodesOf(
      child,
      `${path} ${child.name()}`.trim(),
      path === "" ? own.filter(({ name }) => name !== "--version") : above,
    ),
  );
  return [{ path, commands, options }, ...below];
}

const scripts = { bash, zsh, fish };

const names = (list: readonly { name: string }[]) => list.map(({ name }) => name).join(" ");

/** A word that begins with a dash completes to an option, another one to a command, or else to a file. */
function bash(nodes: readonly Node[]): string {
  const paths = nodes.slice(1).map(({ path }) => `"${path}"`);
  const cases = nodes.map(
    ({ path, commands, options }) =>
      `    "${path}") commands="${names(commands)}"; options="${names(options)}" ;;`,
  );
  return `# bash completion of genmesh
_genmesh() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word commands="" options=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${paths.join("|")}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join("\n")}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$commands" -- "$current")) ;;
  esac
}
complete -o default -F _genmesh genmesh
`;
}

/** The same function: zsh runs those of bash. */
function zsh(nodes: readonly Node[]): string {
  return `#compdef genmesh
autoload -U +X bashcompinit && bashcompinit
${bash(nodes)}`;
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, commands, options }) => {
    const seen = path
      .split(" ")
      .filter(Boolean)
      .map((word) => `__fish_seen_subcommand_from ${word}`);
    const unseen =
      commands.length > 0 ? [`not __fish_seen_subcommand_from ${names(commands)}`] : [];
    const when = [...seen, ...unseen].join("; and ");
    const entry = (flag: string, name: string, description: string) =>
      `complete -c genmesh -n '${when}' ${flag} ${name} -d '${description.replaceAll("'", "\\'")}'`;
    return [
      ...commands.map(({ name, description }) => entry("-f -a", name, description)),
      ...options.map(({ name, description }) => entry("-l", name.slice(2), description)),
    ];
  });
  return `# fish completion of genmesh\n${lines.join("\n")}\n`;
}
