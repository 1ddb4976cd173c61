import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Asset, Batch, Transaction, User, Vault, VaultHistory } from "../../client/index.ts";
import { orNull } from "../shared/request.ts";
import { call, type Listed, readAll, readPages, withQuery } from "./api.ts";
import { mintedOf } from "./day.tsx";
import * as ui from "./parts.tsx";
import { Named, useAsset, Worth, wholeTokens } from "./tokens.tsx";
import { TransactionList } from "./transactions.tsx";

// The search, and a page for each thing that it finds, with its history.

const columnsOf = (isNamed: boolean): readonly ui.Column<Vault>[] => [
  ["Vault", ({ vaultId }) => <ui.To page="vaults" id={vaultId} />],
  [
    "Token",
    (vault) => (
      <>
        <Worth of={vault} />
        {isNamed && vault.tokenId !== null && <Named key={vault.vaultId} of={vault} />}
      </>
    ),
  ],
  ["Status", ({ status }) => <ui.Status of={status} />],
  ["Left", (vault) => wholeTokens({ ...vault, amount: vault.availableBalance }), "number"],
  ["Owner", ({ ownerAddress }) => <ui.To page="users" id={ownerAddress} />],
  ["Batch", ({ batchId }) => <ui.To page="batches" id={batchId} />],
];

type Parameters = Readonly<Record<string, string | undefined>>;

function VaultList({ of, isNamed = false }: { of: Parameters; isNamed?: boolean }) {
  const path = withQuery("/api/v1/vaults", { order: "desc", ...of });
  return <ui.List label="Vaults" path={path} columns={columnsOf(isNamed)} />;
}

export function Vaults() {
  const { images, ...filters } = ui.useFilters();
  return (
    <>
      <ui.Filters label="Find vaults">
        <ui.Input label="Owner (empty: all)" name="ownerAddress" {...ui.ADDRESS} />
        <ui.Input label="Token id" name="tokenId" pattern="\d{1,78}" {...ui.WHOLE} />
        <ui.Choice label="Status" name="status" values={ui.STATUSES} />
        <ui.Select
          label="Names and images"
          name="images"
          options={{ "": "hidden", shown: "shown: their hosts learn your address" }}
        />
      </ui.Filters>
      <VaultList of={filters} isNamed={images === "shown"} />
    </>
  );
}

type Event = readonly [
  at: string,
  what: ComponentChildren,
  who: ComponentChildren,
  status: string,
  page: string,
];

const EVENTS: readonly ui.Column<Event>[] = [
  ["When", ([at, , , , page]) => <ui.When at={at} page={page} />],
  ["What", ([, what]) => what],
  ["Who", ([, , who]) => who],
  ["Status", ([, , , status]) => <ui.Status of={status} />],
];

const NOBODY = `0x${"00".repeat(20)}`;

/**
 * The events of a vault, and earlier ones of the vaults that transfers made it of, newest first.
 * Reads only the first pages of each vault's transactions.
 */
async function eventsOf(vaultId: string, { before, after }: VaultHistory, pages: number) {
  const vaults = [vaultId, ...before.map((step) => step.vaultId)];
  const lists = await Promise.all(
    vaults.map((each) =>
      readPages<Transaction>(`/api/v1/transactions?limit=100&vaultId=${each}`, pages),
    ),
  );
  const own = lists.flatMap(({ data }) => data).filter(({ type }) => type !== "transfer");
  const done = own.map((one): Event => {
    const [what, who] = one.type === "mint" ? ["minted ", "to "] : ["withdrawn ", "by "];
    return [
      one.timestamps.accepted ?? "",
      [what, <Worth key="worth" of={one} />],
      [who, <ui.To key="user" page="users" id={one.userId} />],
      one.status,
      `#/transactions/${one.transactionId}`,
    ];
  });
  const moves = [...before, ...after].filter(({ isChange }) => !isChange);
  const moved = moves.map(({ createdAt, from, to, status, transferId }): Event => {
    const [giver, receiver] = [from, to].map((id) => <ui.To key={id} page="users" id={id} />);
    const isGone = to === NOBODY;
    const who = isGone ? giver : [giver, " to ", receiver];
    return [
      createdAt,
      isGone ? "redeemed" : "transferred",
      who,
      status,
      `#/transfers/${transferId}`,
    ];
  });
  const events = [...done, ...moved].sort(([a], [b]) => b.localeCompare(a));
  return { events, more: lists.some(({ more }) => more) };
}

function Whereabouts({ vault, history }: { vault: Vault; history: VaultHistory }) {
  const { status, ownerAddress, availableBalance, withdrawnBalance } = vault;
  const next = history.after.find(({ isChange }) => !isChange);
  if (status === "failed") return "Nowhere: the mint failed.";
  const certainty =
    status === "finalized"
      ? "for certain: it is final on L1."
      : `here. It is ${status}, and not final on L1 yet.`;
  const holder = availableBalance !== "0" && [
    <ui.To key="holder" page="users" id={ownerAddress} />,
    ` holds it ${certainty} `,
  ];
  const withdrawn = withdrawnBalance !== "0" && `${holder ? "A part" : "It"} was withdrawn to L1. `;
  if (next === undefined)
    return [holder, withdrawn, !holder && !withdrawn && "It waits for a withdrawal."];
  if (next.to === NOBODY) return [holder, withdrawn, "It was redeemed. "];
  const place =
    next.newVaultId === null
      ? ", once the transfer is sealed"
      : [" in vault ", <ui.To key="vault" page="vaults" id={next.newVaultId} />];
  return [holder, withdrawn, <ui.To key="next" page="users" id={next.to} />, " has it", place, "."];
}

/**
 * A vault, where its token is, and what happened to it: as a page, or as a part of the token's
 * page.
 */
export function VaultStory({ id, level = "page" }: { id: string; level?: "page" | "part" }) {
  const [pages, setPages] = useState(1);
  const load = async () => {
    const [vault, history] = await Promise.all([
      call<Vault>("GET", `/api/v1/vaults/${id}`),
      call<VaultHistory>("GET", `/api/v1/vaults/${id}/history`),
    ]);
    return { vault, history, ...(await eventsOf(id, history, pages)) };
  };
  return (
    <ui.Shown of={ui.useLoad(load, `${id} ${pages}`, 5_000)}>
      {({ vault, history, events, more }) => (
        <>
          <ui.Facts
            of={[
              ["Now", <Whereabouts vault={vault} history={history} />],
              ["Token", <Worth of={vault} />],
              ["Not yet withdrawn", wholeTokens({ ...vault, amount: vault.availableBalance })],
              ["Withdrawn", wholeTokens({ ...vault, amount: vault.withdrawnBalance })],
              ["Status", <ui.Status of={vault.status} />],
              ["The token refuses it", vault.refusal],
              ["Owner", <ui.To page="users" id={vault.ownerAddress} />],
              ["User", <ui.To page="users" id={vault.userId} />],
              ["Batch", <ui.To page="batches" id={vault.batchId} />],
              level === "page"
                ? ["Proof", <a href={`/explorer#/vaults/${id}`}>In the explorer</a>]
                : ["Vault", <ui.To page="vaults" id={id} />],
            ]}
          />
          <h2>History</h2>
          <ui.Table label={`History of vault ${id}`} columns={EVENTS} entries={events} />
          {more && <ui.More show={() => setPages(pages + 1)} />}
        </>
      )}
    </ui.Shown>
  );
}

/** An asset, or one token of it: who has it, and its history when one vault holds it. */
export function AssetPage({ id: assetId, tokenId }: { id: string; tokenId: string | undefined }) {
  const asset = useAsset(assetId);
  const query = withQuery("/api/v1/vaults", { assetId, tokenId, limit: "2" });
  const name = asset?.name ?? "Asset";
  if (tokenId === undefined) {
    return (
      <>
        <ui.Title>{name}</ui.Title>
        {asset && (
          <ui.Facts
            of={[
              ["Contract", <code>{asset.contractAddress}</code>],
              ["Standard", asset.standard],
              ["Minted", `${mintedOf(asset)} ${asset.symbol}`],
              ["Can be minted", asset.mintingAvailable ? "yes" : asset.unavailableReason],
            ]}
          />
        )}
        <h2>Transactions</h2>
        <TransactionList label="Transactions" of={{ assetId }} />
      </>
    );
  }
  return (
    <>
      <ui.Title>{`${name} #${tokenId}`}</ui.Title>
      <ui.Live<Listed<Vault>> path={query}>
        {({ data: [first, second] }) => {
          if (first === undefined)
            return <p class="notice">No vault of your application holds this token.</p>;
          if (second === undefined) return <VaultStory id={first.vaultId} level="part" />;
          return <VaultList of={{ assetId, tokenId }} />;
        }}
      </ui.Live>
    </>
  );
}

/** A user by its id, or an owner by its address, with all that it holds. */
export function UserPage({ id }: { id: string }) {
  const isOwner = id.startsWith("0x");
  const load = async (): Promise<readonly User[]> => {
    if (!isOwner) return [await call<User>("GET", `/api/v1/users/${id}`)];
    return readAll<User>(`/api/v1/users?limit=100&ownerAddress=${id}`);
  };
  const of = isOwner ? { ownerAddress: id } : { userId: id };
  return (
    <>
      <ui.Title>{isOwner ? "Owner" : "User"}</ui.Title>
      <ui.Shown of={ui.useLoad(load, id)}>
        {(users) => (
          <ui.Facts
            of={[
              ["Address", <code>{isOwner ? id : users[0]?.ownerAddress}</code>],
              ...users.map(({ userId, reference, createdAt }) => {
                const since = [
                  ` ${reference ?? ""} since `,
                  <ui.When key="since" at={createdAt} />,
                ];
                return ["User", [<ui.To key="user" page="users" id={userId} />, since]] as const;
              }),
            ]}
          />
        )}
      </ui.Shown>
      <h2>Vaults</h2>
      <VaultList of={of} />
      <h2>Transactions</h2>
      <TransactionList label="Transactions" of={of} />
    </>
  );
}

export function BatchPage({ id }: { id: string }) {
  return (
    <>
      <ui.Title>{`Batch ${id}`}</ui.Title>
      <ui.Live<Batch> path={`/public/v1/batches/${id}`}>
        {({ status, vaultCount, timestamps, l1TxHash }) => (
          <ui.Facts
            of={[
              ["Status", <ui.Status of={status} />],
              ["Vaults of all applications", vaultCount.toLocaleString()],
              ...Object.entries(timestamps).map(
                ([step, at]) => [step, <ui.When at={at} />] as const,
              ),
              ["L1 transaction", <ui.Id of={l1TxHash} />],
              ["Data", <a href={`/explorer#/batches/${id}`}>Check it in the explorer</a>],
            ]}
          />
        )}
      </ui.Live>
      <h2>Your vaults in it</h2>
      <VaultList of={{ batchId: id }} />
      <h2>Your transactions in it</h2>
      <TransactionList label="Transactions" of={{ batchId: id }} />
    </>
  );
}

type Found = readonly [kind: string, name: string, page: string];

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const REFERENCE = /^.{0,64}$/s;

/**
 * Each form of text can name one kind of thing. The path of the API tells whether it does, and the
 * page shows it; `*` stands for the text.
 */
const LOOKUPS: readonly (readonly [form: RegExp, kind: string, path: string, page: string])[] = [
  [ADDRESS, "Owner", "/api/v1/users?limit=1&ownerAddress=*", "users/*"],
  [/^(?:validium|zk-rollup)-\d+$/, "Batch", "/public/v1/batches/*", "batches/*"],
  [/^[0-9a-f-]{36}(?:\.\d+)?$/i, "Transaction", "/api/v1/transactions/*", "transactions/*"],
  [UUID, "User", "/api/v1/users/*", "users/*"],
  [UUID, "Asset", "/api/v1/assets/*", "assets/*"],
  [UUID, "Transfer", "/api/v1/transfers/*", "transfers/*"],
  [UUID, "Mint", "/api/v1/transactions?limit=1&mintId=*", "transactions?mintId=*"],
  [/^\d{1,78}$/, "Vault", "/api/v1/vaults/*", "vaults/*"],
  [
    REFERENCE,
    "Transactions with the reference",
    "/api/v1/transactions?limit=1&reference=*",
    "transactions?reference=*",
  ],
];

/**
 * The thing if the API knows the path, by its own name if it has one; nothing for an empty list.
 */
async function look(
  path: string,
  kind: string,
  text: string,
  page: string,
): Promise<readonly Found[]> {
  const known = await orNull(
    call<Partial<Listed<unknown>> & { readonly name?: string }>("GET", path),
  );
  return known === null || known.data?.length === 0 ? [] : [[kind, known.name ?? text, page]];
}

/** Looks a text up wherever it can be an id, an address or a reference. */
async function find(typed: string): Promise<readonly Found[]> {
  // Wherever an address comes from, its case says nothing of the owner.
  const text = ADDRESS.test(typed) ? typed.toLowerCase() : typed;
  const at = encodeURIComponent(text);
  // A token is also found as pages write it, such as Swords #17.
  const [, number] = /(?:^|#)(\d{1,78})$/.exec(text) ?? [];
  const hasAsset = number !== undefined || ADDRESS.test(text);
  const assets = hasAsset ? await readAll<Asset>("/api/v1/assets?limit=100") : [];
  const ofAssets = assets.map(
    async ({ assetId, name, standard, contractAddress }): Promise<readonly Found[]> => {
      if (contractAddress === text) return [["Asset", name, `assets/${assetId}`]];
      if (number === undefined || standard === "erc20") return [];
      const path = `/api/v1/vaults?limit=1&assetId=${assetId}&tokenId=${number}`;
      return look(path, "Token", `${name} #${number}`, `assets/${assetId}/${number}`);
    },
  );
  const lookups = LOOKUPS.filter(([form]) => form.test(text)).map(([, kind, path, page]) =>
    look(path.replace("*", at), kind, text, page.replace("*", at)),
  );
  if (REFERENCE.test(text)) lookups.push(usersWith(at));
  return (await Promise.all([...lookups, ...ofAssets])).flat();
}

async function usersWith(reference: string): Promise<readonly Found[]> {
  const users = await orNull(readAll<User>(`/api/v1/users?limit=100&reference=${reference}`));
  return (users ?? []).map(({ userId, reference }) => [
    "User",
    reference ?? userId,
    `users/${userId}`,
  ]);
}

const FOUND: readonly ui.Column<Found>[] = [
  ["Kind", ([kind]) => kind],
  ["Name", ([, name, page]) => <a href={`#/${page}`}>{name}</a>],
];

/** Leads to the page of what a text names, at once if it names one thing. */
export function Find() {
  const { q = "" } = ui.useFilters();
  const load = async () => {
    const found = await find(q);
    const [only, second] = found;
    if (only !== undefined && second === undefined) location.replace(`#/${only[2]}`);
    return found;
  };
  return (
    <>
      <ui.Title>{`Found for ${q}`}</ui.Title>
      <ui.Shown of={ui.useLoad(load, q)}>
        {(found) => (
          <ui.Table
            label="Found"
            columns={FOUND}
            entries={found}
            empty="Nothing of your application. Give a vault, transaction, batch or token id, an address, a user, or a whole reference."
          />
        )}
      </ui.Shown>
    </>
  );
}
