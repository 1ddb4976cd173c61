import { type Ended, mintmark } from "../cli/cli.ts";

/** Runs a command as its user does; with `input`, its standard input, as a process of its own. */
export function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input?: string,
): Promise<Ended> {
  return mintmark([command, ...args], env, input);
}
