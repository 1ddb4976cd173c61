import { existsSync, readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import type { Complete } from "../cli/command.ts";
import { EXIT, EXIT_HELP, UsageError } from "../cli/exit.ts";
import { addHelp, type Help } from "../cli/help.ts";
import { missingHardhat } from "../sandbox/chain.ts";

// Commander wraps the lines at the terminal's width.
const DESCRIPTION = `Operate a Mintmark engine.

${[
  "Commands work on the store in --store or MINTMARK_STORE: through the server that has it open, which listens in",
  "<store>/operator.sock for its own user, or, where no server runs, by opening it with the settings that the server",
  "reads. Secrets come from the environment or standard input, never from arguments.",
].join(" ")}`;

/** A command or a group of them, as the help lists it, and what completes it. */
type Entry = readonly [usage: string, description: string, load: () => Promise<Complete>];

const missing = missingHardhat();
const needs = missing === null ? "" : `; needs Hardhat (${missing})`;
// Only a clone has PostgreSQL for a cluster.
const isClone = existsSync(new URL("../../hardhat.config.ts", import.meta.url));
/** Only the package has it, because sources change. */
const HELP_FILE = new URL("help.json", import.meta.url);
const operations = async () => (await import("../cli/operations.ts")).operationsOf;

async function assets(): Promise<Complete> {
  const { inspectCommand } = await import("./contracts.ts");
  const add = await operations();
  return (group) => {
    add(group);
    inspectCommand(group);
  };
}

async function webhooks(): Promise<Complete> {
  const { listenCommand } = await import("./webhooks.ts");
  const add = await operations();
  return (group) => {
    add(group);
    listenCommand(group);
  };
}

/**
 * All commands in the order of the help, by what they are for. A command is loaded only when it
 * runs, because most of them need many modules.
 */
const COMMANDS: Readonly<Record<string, readonly Entry[]>> = {
  "Try it on this machine:": [
    [
      "sandbox",
      `a local chain, contracts, an engine, a demo application and the HTTP server, fresh at each start, until Ctrl-C${needs}`,
      async () => (await import("./local.ts")).sandbox,
    ],
    [
      "demo",
      `the main job end to end, checked: mint over HTTP, commit, withdraw, own on L1, trade, come back; on the running sandbox, or one of its own${needs}`,
      async () => (await import("./local.ts")).demo,
    ],
    [
      "chain",
      `a bare local chain in memory, chain id 31337, until Ctrl-C${needs}`,
      async () => (await import("./local.ts")).chain,
    ],
    ...(isClone
      ? [
          [
            "cluster",
            "three servers over PostgreSQL on this machine: mint, kill the leader, and see that nothing was lost",
            async () => (await import("./local.ts")).cluster,
          ] as const,
        ]
      : []),
  ],
  "Deploy, and look after a deployment:": [
    [
      "deploy",
      "deploy to a chain, and a mirror to another; run again to verify what is there, or to add a token or a mirror (MINTMARK_DEPLOYER_KEY, or standard input)",
      async () => (await import("./contracts.ts")).deployCommand,
    ],
    [
      "up",
      "bring a deployment to life on a public network, step by step; run it again to go on",
      async () => (await import("./up.ts")).upCommand,
    ],
    [
      "doctor",
      "look at a running or a stopped deployment, and say what is wrong and what to do",
      async () => (await import("./up.ts")).doctorCommand,
    ],
    [
      "check-contract",
      "compare all code of a settlement contract or a mirror, and its creation, with this version's; print every power over it",
      async () => (await import("./contracts.ts")).checkContractCommand,
    ],
  ],
  "Processes:": [
    [
      "server",
      "one server on one store, until SIGINT or SIGTERM",
      async () => (await import("./local.ts")).serverCommand,
    ],
    [
      "member",
      "a committee member, until SIGINT or SIGTERM; its key pays for voiding (MINTMARK_MEMBER_KEY, or standard input)",
      async () => (await import("./members.ts")).member,
    ],
    [
      "issuer",
      "consent to batches with your tokens, until SIGINT or SIGTERM (MINTMARK_ISSUER_KEY, or standard input)",
      async () => (await import("./members.ts")).issuer,
    ],
    [
      "watch",
      "void ERC-721 vaults that were minted twice, on L1 and on mirrors, until SIGINT or SIGTERM; the key pays and needs no role (MINTMARK_WATCHER_KEY, or standard input)",
      async () => (await import("./members.ts")).watch,
    ],
    [
      "relay",
      "keep a mirror on another chain up to date, until SIGINT or SIGTERM; the key pays there and needs no role (MINTMARK_RELAY_KEY, or standard input)",
      async () => (await import("./members.ts")).relay,
    ],
  ],
  "A store, through its server or alone:": [
    [
      "init",
      "create an empty store with the server's settings, or a cluster's journal from a store",
      async () => (await import("./store.ts")).init,
    ],
    [
      "backup <folder>",
      "copy the journal's new entries to a backup, also beside a running server; then compare",
      operations,
    ],
    [
      "restore [folder]",
      "make a store from a backup, or from the cluster's journal (MINTMARK_JOURNAL)",
      async () => (await import("./store.ts")).restore,
    ],
    ["verify", "derive everything from the journal again and compare every record", operations],
    ["applications", "tenants: who may mint", operations],
    ["keys", "API keys of applications", operations],
    ["people", "people who work in the console, with their roles and links", operations],
    [
      "webhooks",
      "webhooks of applications: list, change their events, skip an event; listen to deliveries",
      webhooks,
    ],
    ["users", "users of applications, each with the L1 address that owns its tokens", operations],
    [
      "assets",
      "token contracts: add, register on L1, whitelist, enable for an application",
      assets,
    ],
    ["batches", "batches of mints: seal, commit to L1, list", operations],
    ["export", "data and proofs for checks and exits", operations],
    ["rescan", "read the contract's events again, and add what the node had left out", operations],
    [
      "mint",
      "mint one token, or an amount of one; the HTTP API takes thousands in a request",
      operations,
    ],
    ["vaults", "vaults of owners: list, show, prove", operations],
    ["transactions", "mints, withdrawals and transfers, with their status", operations],
    [
      "withdraw <vault>",
      "withdraw from a vault to its token's chain, with its owner's signature",
      operations,
    ],
    ["withdrawals", "withdrawals to L1", operations],
  ],
  "Applications and owners, over HTTP:": [
    [
      "drop <file>",
      "mint the rows of a CSV or NDJSON file over HTTP; run it again to go on after a stop",
      async () => (await import("./drop.ts")).dropCommand,
    ],
    [
      "claim-links",
      "make claim links and their QR codes over HTTP; run it again to go on after a stop",
      async () => (await import("./claim-links.ts")).claimLinksCommand,
    ],
    [
      "transfer <vaults...>",
      "give vaults to another owner, by their owner's signature over HTTP",
      async () => (await import("./transfer.ts")).transfer,
    ],
    [
      "redeem <vaults...>",
      "redeem vaults, such as tickets: it burns them for ever",
      async () => (await import("./transfer.ts")).redeem,
    ],
    [
      "cancel-transfer <digest>",
      "cancel a signed transfer that L1 has not got yet, by one transaction of its signer",
      async () => (await import("./transfer.ts")).cancelTransfer,
    ],
    [
      "sell <vault>",
      "offer units of a vault for another token, by its owner's signature over HTTP",
      async () => (await import("./trade.ts")).sell,
    ],
    [
      "buy <order>",
      "take an order by another owner's signature; L1 settles both sides or neither",
      async () => (await import("./trade.ts")).buy,
    ],
    [
      "orders",
      "the orders of the application, by status, asset and price",
      async () => (await import("./trade.ts")).orders,
    ],
    [
      "cancel-order <order>",
      "list an order no longer",
      async () => (await import("./trade.ts")).cancelOrder,
    ],
    [
      "cancel <id>",
      "take back on L1 what an account has signed: an order or withdrawals by their digest, or all of a vault",
      async () => (await import("./trade.ts")).cancel,
    ],
    [
      "enter <token>",
      "bring a token back from L1: burns it there, and L1 makes a vault of it (MINTMARK_OWNER_KEY, or standard input)",
      async () => (await import("./enter.ts")).enterCommand,
    ],
    [
      "renew [vaults...]",
      "make one vault of many, or begin a vault at its eighth transfer anew, by one transaction on L1 (MINTMARK_OWNER_KEY, or standard input)",
      async () => (await import("./renew.ts")).renewCommand,
    ],
    [
      "session",
      "session keys: keys of games that transfer for an owner",
      async () => (await import("./session.ts")).sessionCommands,
    ],
  ],
  "Proofs and exits, without the operator:": [
    [
      "rebuild [folder]",
      "make the public state from L1, and from sources of validium data, in a folder, and compare its roots with L1's",
      async () => (await import("./public-state.ts")).rebuildCommand,
    ],
    [
      "exit-kit <vault>",
      "make a vault's exit kit: from a rebuilt store, or from L1 and a source of the data",
      async () => (await import("./public-state.ts")).exitKitCommand,
    ],
    [
      "exit-page <file>",
      "write the exit page: one HTML file to withdraw with a kit and a wallet, without a server",
      async () => (await import("./exit.ts")).exitPageCommand,
    ],
    [
      "exit <kits...>",
      "withdraw vaults with only their exit kits, an RPC and the owner's key (MINTMARK_OWNER_KEY, or standard input)",
      async () => (await import("./exit.ts")).exitCommand,
    ],
    [
      "settle <offer> <kit>",
      "take an offer that the exit page has saved, with the exit kit of the vault to give (MINTMARK_OWNER_KEY, or standard input)",
      async () => (await import("./exit.ts")).settleCommand,
    ],
  ],
  "This command line:": [
    [
      "completion <shell>",
      "print the completion script of bash, zsh or fish",
      async () => (await import("../cli/completion.ts")).completion(programOf),
    ],
  ],
};

/** The program, whose commands lack what {@link COMMANDS} loads for each. */
function shallow(asJson: boolean) {
  const program = new Command("mintmark")
    .description(DESCRIPTION)
    .version(packageJson.version)
    // Commander would end the process with 1 for a wrong argument.
    .exitOverride()
    .configureOutput({
      // One line, with commander's suggestion.
      outputError: (text, write) => write(`${text.trim().replaceAll(/\s+/g, " ")} (see --help)\n`),
      // Commander would write its own errors as text.
      ...(asJson && { writeErr: () => {} }),
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
    .addHelpText("after", `\n${EXIT_HELP}`)
    .helpCommand("help [command]", "print the help of a command");
  const loads = new Map<Command, () => Promise<Complete>>();
  for (const [heading, entries] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    for (const [usage, description, load] of entries)
      loads.set(program.command(usage).description(description), load);
  }
  return { program, loads };
}

/** The whole program, with every command loaded. */
export async function programOf(): Promise<Command> {
  const { program, loads } = shallow(false);
  for (const [command, load] of loads) (await load())(command);
  return program;
}

export type Helps = Readonly<Record<string, Help>>;

function packagedHelps(): Helps {
  return existsSync(HELP_FILE) ? (JSON.parse(readFileSync(HELP_FILE, "utf8")) as Helps) : {};
}

/**
 * Parses the arguments, loads the command that they name and runs it. Afterwards the process only
 * has to end with `process.exitCode`.
 *
 * @param helps - by the names of commands: their help, for which nothing else is loaded
 */
export async function runCli(args: readonly string[], helps?: Helps): Promise<void> {
  const asJson = args.includes("--json");
  const { program, loads } = shallow(asJson);
  // Commander prints a command's help before it is loaded.
  const [first, ...words] = args;
  const isHelp = first === "help" && words.length > 0;
  const last = isHelp ? "--help" : (args.at(-1) ?? "");
  const known = ["--help", "-h"].includes(last) ? (helps ?? packagedHelps()) : {};
  program.hook("preSubcommand", async (_, command) => {
    const help = known[command.name()];
    if (help === undefined) (await loads.get(command)?.())?.(command);
    // An option may have taken `--help` as its value.
    else addHelp(command, help, () => runCli(args, {}));
  });
  try {
    await program.parseAsync(isHelp ? [...words, "--help"] : args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (!asJson || error.exitCode === 0) return;
    const { printError } = await import("../cli/output.ts");
    printError(new UsageError(error.message.replace(/^error: /, "")), true);
  }
}
