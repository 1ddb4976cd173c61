import type { Transfer } from "../../client/index.ts";
import { type Column, Id, List, Status, Title, When } from "./parts.tsx";

/** Vaults shown of one signed list, which can have 1,024. */
const MOST_SHOWN = 10;

function Given({ of: { failure: ofAll, transfers } }: { of: Transfer }) {
  const given = transfers.filter(({ isChange }) => !isChange);
  return (
    <>
      {given.slice(0, MOST_SHOWN).map(({ vaultId, to, failure }) => (
        <div key={vaultId}>
          <a href={`/explorer#/vaults/${vaultId}`}>{vaultId}</a>{" "}
          {BigInt(to ?? 0) !== 0n ? (
            <>
              to <Id of={to} />
            </>
          ) : (
            <strong>{failure === null ? "redeemed" : "not redeemed"}</strong>
          )}
          {ofAll === null && failure !== null && `: ${failure}`}
        </div>
      ))}
      {given.length > MOST_SHOWN && `and ${given.length - MOST_SHOWN} more`}
    </>
  );
}

const TRANSFERS: readonly Column<Transfer>[] = [
  ["When", ({ createdAt }) => <When at={createdAt} />],
  ["Status", ({ status }) => <Status of={status} />],
  ["Giver", ({ transfers }) => <Id of={transfers[0]?.userId ?? null} />],
  ["Vault and receiver", (transfer) => <Given of={transfer} />],
  ["L1 transaction", ({ l1TxHash }) => <Id of={l1TxHash} />],
  ["Failure", ({ failure }) => failure ?? "–"],
];

export function Transfers() {
  return (
    <>
      <Title lead="An owner signs a transfer with its wallet. A redeemed vault, such as a used ticket, has no owner.">
        Transfers
      </Title>
      <List label="Transfers" path="/api/v1/transfers" columns={TRANSFERS} />
    </>
  );
}
