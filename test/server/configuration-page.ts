import { Metrics } from "../../server/process/metrics.ts";
import { fieldOf } from "../../server/process/settings/config.ts";
import { isSecret, SETTINGS } from "../../server/process/settings/settings.ts";
import { createWorld } from "./fixture.ts";

/** docs/configuration.md, from the settings and metrics themselves. */
export async function configurationPage(): Promise<string> {
  return `${[
    "# Configuration of the server",
    "",
    "`npm run server` reads each setting from its option, then from the environment, then from the JSON file that",
    "`MINTMARK_CONFIG` names. Lists are arrays in the file. Secrets never stand in the file.",
    "",
    "The server checks all settings at start. It names everything that is missing, wrong or unknown at once, and serves",
    "nothing until you fix it. What only L1 can show, such as a wrong chain, it checks once L1 answers: it serves reads",
    "until then, and ends when the setting is wrong.",
    "",
    "| Variable | Field in the file | Default | Meaning |",
    "| --- | --- | --- | --- |",
    ...settingRows(),
    "",
    "Sandbox and live are apart. A key says which one it is for. A store belongs to one environment, chain and contract,",
    "and any other refuses it. A live server asks its chain at start whether it has the configured id and contract.",
    "",
    "## Metrics",
    "",
    "With `MINTMARK_METRICS_PORT`, `GET /metrics` on a port of its own answers in Prometheus' form. It also has what Node",
    "measures of itself: `process_…` and `nodejs_…`, with the event loop's lag.",
    "",
    "| Name | Kind | Labels | Meaning |",
    "| --- | --- | --- | --- |",
    ...(await metricRows()),
  ].join("\n")}\n`;
}

function settingRows(): string[] {
  return Object.entries(SETTINGS).map(([name, schema]) => {
    const field = isSecret(name) ? "" : `\`${fieldOf(name)}\``;
    return `| \`${name}\` | ${field} | ${defaultOf(schema)} | ${schema.description ?? ""} |`;
  });
}

function defaultOf(schema: (typeof SETTINGS)[keyof typeof SETTINGS]): string {
  const without = schema.safeParse(undefined);
  if (!without.success) return "required";
  if (without.data === undefined) return "";
  return Array.isArray(without.data) ? "none" : `\`${String(without.data)}\``;
}

async function metricRows(): Promise<string[]> {
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
    .map(
      ({ name, type, help }) => `| \`${name}\` | ${type} | ${labelsOf(metrics, name)} | ${help} |`,
    );
}

function labelsOf({ registry }: Metrics, name: string): string {
  const { labelNames = [] } = registry.getSingleMetric(name) as { labelNames?: readonly string[] };
  return labelNames.map((label) => `\`${label}\``).join(" ");
}
