import { readFile, writeFile } from "node:fs/promises";
import { type ExitKit, exitKitToJson, parseExitKit } from "../../core/guards/exit/index.ts";

export async function readExitKit(path: string): Promise<ExitKit> {
  return parseExitKit(await readFile(path, "utf8"));
}

export function exitKitText(kit: ExitKit): string {
  return `${JSON.stringify(exitKitToJson(kit), null, 2)}\n`;
}

/** Never replaces a file, which may be the only copy of another kit. */
export function writeExitKit(path: string, kit: ExitKit): Promise<void> {
  return writeFile(path, exitKitText(kit), { flag: "wx" });
}
