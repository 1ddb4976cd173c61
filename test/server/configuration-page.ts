import { Metrics } from "../../server/process/metrics.ts";
import { isSecret, SETTINGS } from "../../server/process/settings/settings.ts";
import { createWorld } from "./fixture.ts";

/** docs/configuration.md, from the settings and metrics themselves. */
export async function configurationPage(): Promise<string> {
  return `${[
    "# Configuration of the server",
    "",
    "`npm run server` reads each setting from its option, then from the environment, then from the JSON file that",
    "`MINTMARK_CONFIG` names. There `MINTMARK_FROM_BLOCK` is `fromBlock`, and lists are arrays. Secrets (†) never stand",
    "in the file. Defaults are in brackets.",
    "",
    "At start the server names everything that is missing, wrong or unknown at once, and serves nothing until you fix it.",
    "If only L1 can show a fault, such as a wrong chain, it serves reads until L1 answers.",
    "",
    ...settingItems(),
    "",
    "A store belongs to one environment, chain and contract.",
    "",
    "## Metrics",
    "",
    "With `MINTMARK_METRICS_PORT`, `GET /metrics` on a port of its own answers in Prometheus' form, with Node's own",
    "`process_…` and `nodejs_…`. Names in `_total` are counters, `mintmark_http_request_seconds` is a histogram, all others",
    "are gauges.",
    "",
    ...(await metricItems()),
  ].join("\n")}\n`;
}

function settingItems(): string[] {
  return Object.entries(SETTINGS).map(([name, schema]) => {
    const variable = `\`${name}\`${isSecret(name) ? "†" : ""}`;
    return wrapped(`- ${variable}${defaultOf(schema)}: ${schema.description ?? ""}`);
  });
}

function defaultOf(schema: (typeof SETTINGS)[keyof typeof SETTINGS]): string {
  const without = schema.safeParse(undefined);
  if (!without.success) return " (required)";
  if (without.data === undefined || Array.isArray(without.data)) return "";
  return ` (\`${String(without.data)}\`)`;
}

async function metricItems(): Promise<string[]> {
  await using world = await createWorld();
  const chain = { blockNumber: async () => 0n, operatorBalance: async () => 0n };
  const metrics = new Metrics({
    engine: world.engine,
    chains: new Map([[1n, async () => chain]]),
    cluster: { awayMs: 0 },
  });
  const all = await metrics.registry.getMetricsAsJSON();
  metrics.close();
  return all
    .filter(({ name }) => name.startsWith("mintmark_"))
    .map(({ name, help }) => wrapped(`- \`${name}${labelsOf(metrics, name)}\`: ${help}`));
}

/** An item in lines of at most 120 characters. */
function wrapped(item: string): string {
  const lines: string[] = [];
  for (const word of item.split(" ")) {
    const line = lines.at(-1);
    if (line === undefined) lines.push(word);
    else if (line.length + 1 + word.length <= 120) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines.join("\n");
}

function labelsOf({ registry }: Metrics, name: string): string {
  const { labelNames = [] } = registry.getSingleMetric(name) as { labelNames?: readonly string[] };
  return labelNames.length === 0 ? "" : `{${labelNames.join(",")}}`;
}
