import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { addCheckContract } from "../commands/check-contract.ts";
import { addClaimLinks } from "../commands/claim-links.ts";
import { addDeploy } from "../commands/deploy.ts";
import { addDoctor } from "../commands/doctor.ts";
import { addDrop } from "../commands/drop.ts";
import { addExit } from "../commands/exit.ts";
import { addExitKit } from "../commands/exit-kit.ts";
import { addInspect } from "../commands/inspect.ts";
import { addLocal } from "../commands/local.ts";
import { addMembers } from "../commands/members.ts";
import { addRebuild } from "../commands/rebuild.ts";
import { addServer } from "../commands/server.ts";
import { addSession } from "../commands/session.ts";
import { addStore } from "../commands/store.ts";
import { addTransfer } from "../commands/transfer.ts";
import { addUp } from "../commands/up.ts";
import { addCompletion } from "./completion.ts";
import { EXIT, EXIT_HELP, UsageError } from "./exit-codes.ts";
import { addOperations } from "./operations.ts";
import { printError } from "./output.ts";

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
  addRebuild,
  addCheckContract,
  addExitKit,
  addExit,
  addCompletion,
] as const;

/** Every command, ready to parse. */
export function buildProgram(): Command {
  const program = new Command("mintmark")
    .description(DESCRIPTION)
    .version(packageJson.version)
    .showHelpAfterError("(add --help for the options and examples)")
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
