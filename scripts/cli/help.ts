import type { EventEmitter } from "node:events";
import type { Command } from "commander";

/**
 * All that the help of a command shows below its name and its description. The package has it in a
 * file: options come from schemas, which take longer to load than Node does.
 */
export interface Help {
  readonly options: readonly (readonly [flags: string, meaning: string])[];
  /** Examples and notes. */
  readonly after: string;
  readonly commands: readonly (readonly [usage: string, description: string, help: Help])[];
}

/** The help of a command that is complete. */
export function helpOf(command: Command): Help {
  const { optionDescription } = command.createHelp();
  let after = "";
  const write = (text: string) => {
    after += text;
  };
  // Its types leave out what it inherits.
  (command as unknown as EventEmitter).emit("afterHelp", { command, error: false, write });
  return {
    options: command.options.map((option) => [option.flags, optionDescription(option)]),
    after: after.replace(/\n$/, ""),
    commands: command.commands.map((child) => {
      const places = child.usage().replaceAll(/\[(?:options|command)\] ?/g, "");
      return [`${child.name()} ${places}`.trim(), child.description(), helpOf(child)];
    }),
  };
}

/** Completes a command that shows its help. It does `instead` if it was called for its work. */
export function addHelp(
  added: Command,
  { options, after, commands }: Help,
  instead: () => Promise<void>,
): void {
  for (const [flags, meaning] of options) added.option(flags, meaning);
  if (after !== "") added.addHelpText("after", after);
  if (commands.length === 0) added.action(instead);
  for (const [usage, description, help] of commands)
    addHelp(added.command(usage).description(description), help, instead);
}
