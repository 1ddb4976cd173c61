import { useState } from "preact/hooks";
import type { Transfer } from "../../client/index.ts";
import { withQuery } from "./api.ts";
import * as ui from "./parts.tsx";
import { Worth } from "./tokens.tsx";

/** Vaults shown at first of one signed list, which can have 1,024. */
const MOST_SHOWN = 10;

type Given = Transfer["transfers"][number];

/** A vault that a list gives or redeems; null for the row that stands for the list's vaults which are not shown. */
interface Row {
  readonly list: Transfer;
  readonly given: Given | null;
}

/** The change is the giver's as before, so it is no row. */
const givenIn = ({ transfers }: Transfer): readonly Given[] => transfers.filter(({ isChange }) => !isChange);

function rowsOf(lists: readonly Transfer[], opened: ReadonlySet<string>): readonly Row[] {
  return lists.flatMap((list): Row[] => {
    const given = givenIn(list);
    const isWhole = given.length <= MOST_SHOWN || opened.has(list.transferId);
    const rows = (isWhole ? given : given.slice(0, MOST_SHOWN)).map((each) => ({ list, given: each }));
    return isWhole ? rows : [...rows, { list, given: null }];
  });
}

function Receiver({ of: { to, failure } }: { of: Given }) {
  if (BigInt(to ?? 0) !== 0n) return <ui.To page="users" id={to} />;
  return failure === null ? <span class="status done">redeemed</span> : <>not redeemed</>;
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
  ["Status", ({ list, given }) => given && <ui.Status of={given.failure === null ? list.status : "failed"} />],
  ["When", ({ list, given }) => given && <ui.When at={list.createdAt} />],
  ["L1 transaction", ({ list, given }) => given && <ui.Id of={list.l1TxHash} />],
];

export function Transfers() {
  const filters = ui.useFilters();
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const open = ({ transferId }: Transfer) => setOpened(new Set([...opened, transferId]));
  return (
    <>
      <ui.Title lead="An owner signs who gets its vaults, or redeems them. A redeemed vault, such as a used ticket, is gone for ever. A failed transfer moves nothing.">
        Transfers
      </ui.Title>
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

/** One signed list, with all that it gives. */
export function TransferPage({ id }: { id: string }) {
  return (
    <>
      <ui.Title>Transfer</ui.Title>
      <ui.Live<Transfer> path={`/api/v1/transfers/${id}`}>
        {(list) => <ui.Table label="Transfer" columns={columnsOf(() => {})} entries={rowsOf([list], new Set([id]))} />}
      </ui.Live>
    </>
  );
}
