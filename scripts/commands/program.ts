import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { addCompletion } from "../cli/completion.ts";
import { EXIT, EXIT_HELP, UsageError } from "../cli/errors.ts";
import { addOperations } from "../cli/operations.ts";
import { printError } from "../cli/output.ts";
import { addClaimLinks } from "./claim-links.ts";
import { addDeploy } from "./deploy.ts";
import { addDoctor } from "./doctor.ts";
import { addDrop } from "./drop.ts";
import { addExit } from "./exit.ts";
import { addInspect } from "./inspect.ts";
import { addLocal, addServer } from "./local.ts";
import { addMembers } from "./members.ts";
import { addPublicState } from "./public-state.ts";
import { addSession } from "./session.ts";
import { addStore } from "./store.ts";
import { addTransfer } from "./transfer.ts";
import { addUp } from "./up.ts";

// Commander wraps the lines at the terminal's width.
const DESCRIPTION = `Operate a Mintmark engine.

${[
  "Commands work on the store in --store or MINTMARK_STORE: through the server that has it open, which listens in",
  "<store>/operator.sock for its own user, or, where no server runs, by opening it with the settings that the server",
  "reads. Secrets come from the environment or standard input, never from arguments.",
].join(" ")}`;

const GROUPS = [
  addLocal,
  addServer,
  addMembers,
  addDeploy,
  addUp,
  addDoctor,
  addStore,
  addOperations,
  addInspect,
  addDrop,
  addClaimLinks,
  addTransfer,
  addSession,
  addPublicState,
  addExit,
  addCompletion,
] as const;

/** Every command, ready to parse. */
export function buildProgram(): Command {
  const program = new Command("mintmark")
    .description(DESCRIPTION)
    .version(packageJson.version)
    .configureOutput({
      // One line, with commander's suggestion.
      outputError: (text, write) => write(`${text.trim().replaceAll(/\s+/g, " ")} (see --help)\n`),
    })
    .addHelpText("after", `\n${EXIT_HELP}`);
  for (const add of GROUPS) add(program);
  overrideExit(program);
  return program;
}

/** Parses the arguments and runs the command. Afterwards the process only has to end with `process.exitCode`. */
export async function runCli(args: readonly string[]): Promise<void> {
  const program = buildProgram();
  const asJson = args.includes("--json");
  if (asJson) silenceErrors(program);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (asJson && error.exitCode !== 0) printError(new UsageError(error.message.replace(/^error: /, "")), true);
  }
}

/** Commander would write its own errors as text. */
function silenceErrors(command: Command): void {
  command.configureOutput({ writeErr: () => {} });
  command.commands.forEach(silenceErrors);
}

/** Commander would end the process with 1 for a wrong argument. */
function overrideExit(command: Command): void {
  command.exitOverride();
  command.commands.forEach(overrideExit);
}
