import { useState } from "preact/hooks";
import type { Asset, Transfer } from "../../client/index.ts";
import { call, type Listed } from "./api.ts";
import { wholeTokens } from "./day.tsx";
import { type Column, Id, List, Status, StatusChoice, Title, useLoad, When } from "./parts.tsx";

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

function tokenOf({ assetId, tokenId, amount, ...units }: Given, assets: readonly Asset[]): string {
  const { name = "Token", standard } = assets.find((asset) => asset.assetId === assetId) ?? {};
  const token = tokenId === null ? name : `${name} ${tokenId}`;
  if (standard === "erc721") return token;
  return amount === null ? `${token}, all that is left` : `${wholeTokens({ amount, ...units })} × ${token}`;
}

function Receiver({ of: { to, failure } }: { of: Given }) {
  if (BigInt(to ?? 0) !== 0n) return <Id of={to} />;
  return failure === null ? <span class="status done">redeemed</span> : <>not redeemed</>;
}

const columnsOf = (assets: readonly Asset[], open: (list: Transfer) => void): readonly Column<Row>[] => [
  [
    "Vault",
    ({ list, given }) =>
      given === null ? (
        <button type="button" onClick={() => open(list)}>
          {`Show ${(givenIn(list).length - MOST_SHOWN).toLocaleString()} more`}
        </button>
      ) : (
        <>
          <bdi>{tokenOf(given, assets)}</bdi>
          <br />
          <a class="quiet" href={`/explorer#/vaults/${given.vaultId}`}>
            {given.vaultId}
          </a>
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
            from <Id of={given.from} />
          </span>
        </>
      ),
  ],
  ["Status", ({ list, given }) => given && <Status of={given.failure === null ? list.status : "failed"} />],
  ["When", ({ list, given }) => given && <When at={list.createdAt} />],
  ["L1 transaction", ({ list, given }) => given && <Id of={list.l1TxHash} />],
];

export function Transfers() {
  const [status, setStatus] = useState("");
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const assets = useLoad(() => call<Listed<Asset>>("GET", "/api/v1/assets?limit=100"), "assets");
  const open = ({ transferId }: Transfer) => setOpened(new Set([...opened, transferId]));
  return (
    <>
      <Title lead="An owner signs who gets its vaults, or redeems them. A redeemed vault, such as a used ticket, is gone for ever. A failed transfer moves nothing.">
        Transfers
      </Title>
      <StatusChoice value={status} onChoose={setStatus} />
      <List<Transfer, Row>
        label="Transfers"
        path={`/api/v1/transfers${status && `?status=${status}`}`}
        columns={columnsOf(assets.value?.data ?? [], open)}
        rowsOf={(lists) => rowsOf(lists, opened)}
      />
    </>
  );
}
