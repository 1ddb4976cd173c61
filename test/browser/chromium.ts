import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import type { LocalAccount } from "viem";

/** Where Debian and most others put it; MINTMARK_CHROMIUM names another. */
const EXECUTABLE = process.env.MINTMARK_CHROMIUM ?? "/usr/bin/chromium";

/** Whether browser tests can run here. */
export const hasChromium = existsSync(EXECUTABLE);
if (!hasChromium) {
  process.stderr.write(
    `No Chromium at ${EXECUTABLE}: the browser tests are skipped (apt-get install chromium).\n`,
  );
}

/** A phone at night, and a screen by day. */
export const SHAPES: readonly BrowserContextOptions[] = [
  { viewport: { width: 390, height: 844 }, colorScheme: "dark" },
  { viewport: { width: 1280, height: 900 }, colorScheme: "light" },
];

export function launchChromium(): Promise<Browser> {
  const quiet = ["background-networking", "component-update", "sync", "gpu", "quic"].map(
    (name) => `--disable-${name}`,
  );
  return chromium.launch({
    timeout: 300_000,
    executablePath: EXECUTABLE,
    args: ["--no-sandbox", "--no-first-run", ...quiet],
  });
}

export interface Visit {
  readonly page: Page;
  /** Errors in the console, uncaught ones, and breaches of the Content-Security-Policy. */
  readonly problems: readonly string[];
  /** Origins that the page sent requests to. */
  readonly origins: ReadonlySet<string>;
}

/** A page that remembers what went wrong in it and where its requests went. */
export async function visit(context: BrowserContext): Promise<Visit> {
  const page = await context.newPage();
  page.setDefaultTimeout(300_000);
  const problems: string[] = [];
  const origins = new Set<string>();
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    if (/^https?:/.test(request.url())) origins.add(new URL(request.url()).origin);
  });
  return { page, problems, origins };
}

/**
 * Puts a wallet (EIP-1193) into every page of the context: it signs with the account, and passes
 * the rest on to an Ethereum node.
 */
export async function addWallet(
  context: BrowserContext,
  account: LocalAccount,
  rpc: string,
): Promise<void> {
  await context.exposeFunction(
    "walletRequest",
    async (method: string, params: readonly unknown[]) => {
      if (method === "eth_requestAccounts") return [account.address];
      if (method === "personal_sign")
        return account.signMessage({ message: { raw: params[0] as `0x${string}` } });
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const answer = await fetch(rpc, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      return ((await answer.json()) as { result: unknown }).result;
    },
  );
  await context.addInitScript(() => {
    const page = globalThis as unknown as {
      walletRequest(method: string, params: readonly unknown[]): Promise<unknown>;
      ethereum: object;
    };
    page.ethereum = {
      request: ({ method, params = [] }: { method: string; params?: readonly unknown[] }) =>
        page.walletRequest(method, params),
    };
  });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The faults that axe-core finds on a page, as `rule: element`. */
export async function axeFaults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    interface Violation {
      readonly id: string;
      readonly nodes: readonly { readonly html: string }[];
    }
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: Violation[] }> };
    };
    const { violations } = await axe.run();
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`),
    );
  });
}
