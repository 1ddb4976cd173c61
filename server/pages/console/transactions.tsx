import { useState } from "preact/hooks";
import type { Transaction, Transfer } from "../../client/index.ts";
import { readAll, withQuery } from "./api.ts";
import * as ui from "./parts.tsx";
import { readAsset, Worth, wholeTokens } from "./tokens.tsx";

const PATH = "/api/v1/transactions";

/** A transfer of 0 is one of all that is left. */
const isRest = ({ type, amount }: Transaction) => type === "transfer" && amount === "0";

export const COLUMNS: readonly ui.Column<Transaction>[] = [
  [
    "When",
    ({ timestamps, transactionId: id }) => (
      <ui.When at={timestamps.accepted} page={`#/transactions/${id}`} />
    ),
  ],
  ["What", (one) => [`${one.type} `, <Worth key="worth" of={one} isRest={isRest(one)} />]],
  [
    "Status",
    ({ status, failure }) => (
      <>
        <ui.Status of={status} />
        {failure !== null && <p class="why">{failure}</p>}
      </>
    ),
  ],
  [
    "Vault and user",
    ({ vaultId, userId }) => (
      <>
        <ui.To page="vaults" id={vaultId} />
        <br />
        <ui.To page="users" id={userId} />
      </>
    ),
  ],
  ["Reference", ({ reference }) => reference ?? "–"],
];

export function TransactionList({
  label,
  of,
}: {
  label: string;
  of: Readonly<Record<string, string | undefined>>;
}) {
  return (
    <>
      <p>
        <ui.Action
          text="Export as CSV"
          work={() => exportCsv(withQuery(PATH, { ...of, limit: "100" }))}
        />
      </p>
      <ui.List label={label} path={withQuery(PATH, of)} columns={COLUMNS} />
    </>
  );
}

/** Columns of the exported file. Amounts are whole tokens, without groups of digits. */
const EXPORTED = [
  ...[
    "accepted",
    "type",
    "status",
    "asset",
    "symbol",
    "tokenId",
    "amount",
    "userId",
    "vaultId",
    "batchId",
  ],
  ...["reference", "transactionId", "l1TxHash", "failure"],
];

async function exportCsv(path: string): Promise<void> {
  const lines = [EXPORTED];
  for (const one of await readAll<Transaction>(path)) {
    const { name: asset, symbol } = await readAsset(one.assetId);
    const amount = isRest(one) ? "" : wholeTokens(one).replaceAll(",", "");
    const cells: Readonly<Record<string, unknown>> = {
      ...one,
      ...one.timestamps,
      asset,
      symbol,
      amount,
    };
    lines.push(EXPORTED.map((column) => String(cells[column] ?? "")));
  }
  const text = lines.map((line) => `${line.map(csvCell).join(",")}\r\n`).join("");
  ui.download("transactions.csv", new Blob([text], { type: "text/csv" }));
}

/** Spreadsheets would run text that begins like a formula. */
function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The API's bounds are exclusive. A day is one of the person's time zone. */
function between({ from, to, ...others }: Readonly<Record<string, string>>) {
  return {
    ...others,
    createdAfter: from && new Date(Date.parse(`${from}T00:00:00`) - 1).toISOString(),
    createdBefore: to && new Date(`${to}T24:00:00`).toISOString(),
  };
}

export function Transactions({ type }: { type?: "withdrawal" }) {
  const filters = ui.useFilters();
  return (
    <>
      <ui.Filters label="Find transactions">
        {type === undefined && (
          <ui.Choice label="Type" name="type" values={["mint", "withdrawal", "transfer"]} />
        )}
        <ui.Choice label="Status" name="status" values={ui.STATUSES} />
        <ui.Input label="From" name="from" type="date" />
        <ui.Input label="To" name="to" type="date" />
        {type === undefined && <ui.Input label="Reference" name="reference" maxLength={64} />}
      </ui.Filters>
      {filters.from && filters.to && filters.from > filters.to ? (
        <ui.Failure
          error={new Error(`From, ${filters.from}, is after To, ${filters.to}. Swap them.`)}
        />
      ) : (
        <TransactionList
          label={type ? "Withdrawals" : "Transactions"}
          of={{ ...between(filters), type: type ?? filters.type }}
        />
      )}
    </>
  );
}

export function TransactionPage({ id }: { id: string }) {
  return (
    <ui.Live<Transaction> path={`${PATH}/${encodeURIComponent(id)}`}>
      {(one) => (
        <ui.Facts
          of={[
            ["Id", <code>{one.transactionId}</code>],
            ["Type", one.type],
            ["Token", <Worth of={one} isRest={isRest(one)} />],
            ["Status", <ui.Status of={one.status} />],
            ["Failure", one.failure],
            ["User", <ui.To page="users" id={one.userId} />],
            ["Vault", <ui.To page="vaults" id={one.vaultId} />],
            ["Batch", <ui.To page="batches" id={one.batchId} />],
            ["Reference", one.reference ?? "–"],
            ...ui.STATUSES.map(
              (step) =>
                [step, one.timestamps[step] && <ui.When at={one.timestamps[step]} />] as const,
            ),
            ["L1 transaction", <ui.Id of={one.l1TxHash} />],
          ]}
        />
      )}
    </ui.Live>
  );
}

/** Vaults shown at first of one signed list, which can have 1,024. */
const MOST_SHOWN = 10;

type Given = Transfer["transfers"][number];

/**
 * A vault that a list gives or redeems; null for the row that stands for the list's vaults which
 * are not shown.
 */
interface Row {
  readonly list: Transfer;
  readonly given: Given | null;
}

/** The change is the giver's as before, so it is no row. */
const givenIn = ({ transfers }: Transfer): readonly Given[] =>
  transfers.filter(({ isChange }) => !isChange);

function rowsOf(lists: readonly Transfer[], opened: ReadonlySet<string>): readonly Row[] {
  return lists.flatMap((list): Row[] => {
    const given = givenIn(list);
    const isWhole = given.length <= MOST_SHOWN || opened.has(list.transferId);
    const rows = (isWhole ? given : given.slice(0, MOST_SHOWN)).map((each) => ({
      list,
      given: each,
    }));
    return isWhole ? rows : [...rows, { list, given: null }];
  });
}

function Receiver({ of: { to, failure } }: { of: Given }) {
  if (BigInt(to ?? 0) !== 0n) return <ui.To page="users" id={to} />;
  return failure === null ? <ui.Status of="redeemed" /> : <>not redeemed</>;
}

const columnsOf = (open: (list: Transfer) => void): readonly ui.Column<Row>[] => [
  [
    "Vault",
    ({ list, given }) =>
      given === null ? (
        <ui.Button
          onClick={() => open(list)}
          text={`Show ${(givenIn(list).length - MOST_SHOWN).toLocaleString()} more`}
        />
      ) : (
        <>
          <Worth of={{ ...given, amount: given.amount ?? "0" }} isRest={given.amount === null} />
          <br />
          <ui.To page="vaults" id={given.vaultId} />
          {given.failure !== null && <p class="why">{given.failure}</p>}
        </>
      ),
  ],
  [
    "Receiver and giver",
    ({ given }) =>
      given && (
        <>
          <Receiver of={given} />
          <br />
          <span class="quiet">
            from <ui.To page="users" id={given.from} />
          </span>
        </>
      ),
  ],
  [
    "Status",
    ({ list, given }) =>
      given && <ui.Status of={given.failure === null ? list.status : "failed"} />,
  ],
  ["When", ({ list, given }) => given && <ui.When at={list.createdAt} />],
  ["L1 transaction", ({ list, given }) => given && <ui.Id of={list.l1TxHash} />],
];

export function Transfers() {
  const filters = ui.useFilters();
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const open = ({ transferId }: Transfer) => setOpened(new Set([...opened, transferId]));
  return (
    <>
      <ui.Filters label="Find transfers">
        <ui.Choice label="Status" name="status" values={ui.STATUSES} />
      </ui.Filters>
      <ui.List<Transfer, Row>
        label="Transfers"
        path={withQuery("/api/v1/transfers", filters)}
        columns={columnsOf(open)}
        rowsOf={(lists) => rowsOf(lists, opened)}
      />
    </>
  );
}

export function TransferPage({ id }: { id: string }) {
  return (
    <ui.Live<Transfer> path={`/api/v1/transfers/${id}`}>
      {(list) => (
        <ui.Table
          label="Transfer"
          columns={columnsOf(() => {})}
          entries={rowsOf([list], new Set([id]))}
        />
      )}
    </ui.Live>
  );
}
