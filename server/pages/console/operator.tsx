import type { Application, Batch, Operations } from "../../client/index.ts";
import { call } from "./api.ts";
import { Chart } from "./chart.tsx";
import * as ui from "./parts.tsx";

/** Readiness checks whose name does not say what they look at. */
const CHECKS: Readonly<Record<string, string>> = {
  commit: "Commits",
  committee: "Committee members",
  follow: "Reading L1",
  kzg: "KZG, for blobs",
  l1Clock: "L1's clock",
  l1Lag: "Blocks behind L1",
  operator: "Operator's role",
  operatorBalance: "Operator's balance",
  seal: "Sealing",
  withdraw: "Withdrawals",
};

/** The name of a check in words: `openBatches` as `Open batches`. */
function wordsOf(name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return CHECKS[name] ?? `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

const BATCHES: readonly ui.Column<Batch>[] = [
  ["Batch", ({ batchId }) => <a href={`/explorer#/batches/${batchId}`}>{batchId}</a>],
  ["Status", ({ status }) => <ui.Status of={status} />],
  ["Vaults", ({ vaultCount }) => vaultCount.toLocaleString(), "number"],
  ["Opened", ({ timestamps }) => <ui.When at={timestamps.open} />],
  ["Final", ({ timestamps }) => <ui.When at={timestamps.finalized} />],
  ["L1 transaction", ({ l1TxHash }) => <ui.Id of={l1TxHash} />],
];

export function Operating() {
  return (
    <>
      <ui.Live<Operations> path="/console/v1/operations">
        {({ checks, commits }) => {
          const known = commits.flatMap(({ settledAt, gas, mintCount }) =>
            gas === null ? [] : [{ at: Date.parse(settledAt) / 1000, gas: Number(gas), mintCount }],
          );
          const points = (value: (commit: (typeof known)[number]) => number) =>
            known
              .map((commit) => ({ at: commit.at, value: value(commit) }))
              .sort((a, b) => a.at - b.at);
          return (
            <>
              <h2>{checks.every(({ ok }) => ok) ? "Ready" : "Not ready"}</h2>
              <ui.Table
                label="Readiness"
                entries={checks}
                columns={[
                  ["Check", ({ name }) => wordsOf(name)],
                  ["Status", ({ ok }) => <ui.Status of={ok ? "ok" : "failed"} />],
                  ["Finding", ({ detail }) => detail],
                ]}
              />
              <h2>Gas</h2>
              <Chart label="Gas of a batch's commit" points={points(({ gas }) => gas)} />
              <Chart
                label="Gas of a mint in its batch"
                points={points(({ gas, mintCount }) => Math.round(gas / mintCount))}
              />
            </>
          );
        }}
      </ui.Live>
      <h2>Batches</h2>
      <ui.List label="Batches" path="/public/v1/batches" columns={BATCHES} />
    </>
  );
}

export function Applications({ choose }: { choose: (application: Application) => void }) {
  const create = (application: ui.Texts) => call("POST", "/console/v1/applications", application);
  const suspend = ({ applicationId, suspended }: Application) =>
    call(suspended ? "DELETE" : "PUT", `/console/v1/applications/${applicationId}/suspension`);
  const columns: ui.Column<Application>[] = [
    ["Name", ({ name }) => name],
    ["Id", ({ applicationId }) => <ui.Id of={applicationId} />],
    ["Status", ({ suspended }) => <ui.Status of={suspended ? "suspended" : "active"} />],
    ["Created", ({ createdAt }) => <ui.When at={createdAt} />],
    ui.actions((one) => [
      ["Look into", () => choose(one)],
      one.suspended
        ? ["Resume", () => suspend(one)]
        : ["Suspend", () => suspend(one), `Suspend ${one.name}? Its keys stop at once.`],
    ]),
  ];
  return (
    <>
      <ui.Form label="New application" action="Create application" send={create}>
        <ui.Input label="Name" name="name" required maxLength={200} />
      </ui.Form>
      <ui.List
        idIn="applicationId"
        label="Applications"
        path="/console/v1/applications"
        columns={columns}
      />
    </>
  );
}
