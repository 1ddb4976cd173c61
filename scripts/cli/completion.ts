import type { Command } from "commander";
import { command } from "./command.ts";
import { UsageError } from "./exit.ts";

/**
 * `mintmark completion <shell>`: a script that completes commands and options, generated from the
 * commands.
 */
export const completion = (programOf: () => Promise<Command>) =>
  command({
    examples: [
      "completion bash > /etc/bash_completion.d/mintmark",
      "completion zsh > ~/.zfunc/_mintmark",
      "completion fish > ~/.config/fish/completions/mintmark.fish",
    ],
    async work({ args: [shell = ""] }) {
      const script = SCRIPTS[shell];
      if (script === undefined) throw new UsageError("name bash, zsh or fish");
      process.stdout.write(script(linesOf(await programOf())));
    },
  });

/** The words after a path of commands, which blanks separate; it is empty at the start. */
type Line = Readonly<{ path: string; words: readonly string[] }>;

function linesOf(command: Command, path: readonly string[] = []): Line[] {
  const names = command.commands.map((child) => child.name());
  const options = [
    ...command.options.map(({ long }) => long).filter((long) => typeof long === "string"),
    "--help",
  ];
  const children = command.commands.flatMap((child) => linesOf(child, [...path, child.name()]));
  return [{ path: path.join(" "), words: [...names, ...options] }, ...children];
}

const BASH_BODY = (lines: readonly Line[]) => `
  local path="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) break ;; esac
    path="\${path:+$path }$word"
  done
  while :; do
    case "$path" in
${lines.map(({ path, words }) => `      "${path}") words="${words.join(" ")}" ;;`).join("\n")}
    esac
    # A word that is no command is a command's argument.
    [ -n "$words" ] && break
    case "$path" in *" "*) path="\${path% *}" ;; *) path="" ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))`;

const SCRIPTS: Readonly<Record<string, (lines: readonly Line[]) => string>> = {
  bash: (lines) =>
    `_mintmark() {${BASH_BODY(lines)}\n}\ncomplete -o default -F _mintmark mintmark\n`,
  zsh: (lines) =>
    `#compdef mintmark\nautoload -U +X bashcompinit && bashcompinit\n_mintmark() {${BASH_BODY(lines)}\n}\ncomplete -o default -F _mintmark mintmark\n`,
  fish: (lines) =>
    lines
      .flatMap(({ path, words }) =>
        words.map((word) => {
          const isAt =
            path === ""
              ? "__fish_use_subcommand"
              : `__fish_seen_subcommand_from ${path.split(" ").at(-1)}`;
          const what = word.startsWith("--") ? `-l ${word.slice(2)}` : `-f -a ${word}`;
          return `complete -c mintmark -n "${isAt}" ${what}\n`;
        }),
      )
      .join(""),
};
