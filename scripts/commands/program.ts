import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { addCompletion } from "../cli/completion.ts";
import { EXIT, EXIT_HELP, UsageError } from "../cli/exit.ts";
import { addOperations } from "../cli/operations.ts";
import { printError } from "../cli/output.ts";
import { claimLinksCommand } from "./claim-links.ts";
import { checkContractCommand, deployCommand, inspectCommand } from "./contracts.ts";
import { dropCommand } from "./drop.ts";
import { exitCommand, exitPageCommand } from "./exit.ts";
import { localCommands, serverCommand } from "./local.ts";
import { memberCommands } from "./members.ts";
import { exitKitCommand, rebuildCommand } from "./public-state.ts";
import { sessionCommands } from "./session.ts";
import { storeCommands } from "./store.ts";
import { transferCommands } from "./transfer.ts";
import { doctorCommand, upCommand } from "./up.ts";

// Commander wraps the lines at the terminal's width.
const DESCRIPTION = `Operate a Mintmark engine.

${[
  "Commands work on the store in --store or MINTMARK_STORE: through the server that has it open, which listens in",
  "<store>/operator.sock for its own user, or, where no server runs, by opening it with the settings that the server",
  "reads. Secrets come from the environment or standard input, never from arguments.",
].join(" ")}`;

/** Commands in the order of the help, by what they are for. */
const COMMANDS = {
  "Try it on this machine:": localCommands,
  "Deploy, and look after a deployment:": [
    deployCommand,
    upCommand,
    doctorCommand,
    checkContractCommand,
  ],
  "Processes:": [serverCommand, ...memberCommands],
  "A store, through its server or alone:": [...storeCommands, addOperations, inspectCommand],
  "Applications and owners, over HTTP:": [
    dropCommand,
    claimLinksCommand,
    ...transferCommands,
    ...sessionCommands,
  ],
  "Proofs and exits, without the operator:": [
    rebuildCommand,
    exitKitCommand,
    exitPageCommand,
    exitCommand,
  ],
  "This command line:": [addCompletion],
} as const;

export function buildProgram(): Command {
  const program = new Command("mintmark")
    .description(DESCRIPTION)
    .version(packageJson.version)
    .configureOutput({
      // One line, with commander's suggestion.
      outputError: (text, write) => write(`${text.trim().replaceAll(/\s+/g, " ")} (see --help)\n`),
    })
    .addHelpText("beforeAll", ({ command, error }) => {
      const asked = command.args[0] === "help";
      const [name = "help"] = asked ? command.args.slice(1) : command.args;
      const isCommand = command.commands.length === 0 || name === "help" || name.startsWith("-");
      // Commander would ignore an unknown command before `--help` or after `help`. Alone it refuses
      // it.
      if ((asked || !error) && !isCommand) command.parse([name], { from: "user" });
      return "";
    })
    .addHelpText("after", `\n${EXIT_HELP}`);
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    for (const add of commands) add(program);
  }
  program.helpCommand("help [command]", "print the help of a command");
  // Commander would end the process with 1 for a wrong argument.
  onEvery(program, (command) => command.exitOverride());
  return program;
}

/**
 * Parses the arguments and runs the command. Afterwards the process only has to end with
 * `process.exitCode`.
 */
export async function runCli(args: readonly string[]): Promise<void> {
  const program = buildProgram();
  const asJson = args.includes("--json");
  // Commander would write its own errors as text.
  if (asJson) onEvery(program, (command) => command.configureOutput({ writeErr: () => {} }));
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (asJson && error.exitCode !== 0)
      printError(new UsageError(error.message.replace(/^error: /, "")), true);
  }
}

function onEvery(command: Command, change: (command: Command) => void): void {
  change(command);
  for (const each of command.commands) onEvery(each, change);
}
