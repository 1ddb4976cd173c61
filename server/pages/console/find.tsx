import type { Asset, User } from "../../client/index.ts";
import { orNull } from "../shared/request.ts";
import { call, type Listed, readAll } from "./api.ts";
import { type Column, Shown, Table, Title, useFilters, useLoad } from "./parts.tsx";

type Found = readonly [kind: string, name: string, page: string];

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const REFERENCE = /^.{0,64}$/s;

/** What a text of some form can name, with the path of the API that tells, and the page. `*` stands for the text. */
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

/** The thing if the API knows the path, by its own name if it has one; nothing for an empty list. */
async function look(path: string, kind: string, text: string, page: string): Promise<readonly Found[]> {
  const known = await orNull(call<Partial<Listed<unknown>> & { readonly name?: string }>("GET", path));
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
  const ofAssets = assets.map(async ({ assetId, name, standard, contractAddress }): Promise<readonly Found[]> => {
    if (contractAddress === text) return [["Asset", name, `assets/${assetId}`]];
    if (number === undefined || standard === "erc20") return [];
    const path = `/api/v1/vaults?limit=1&assetId=${assetId}&tokenId=${number}`;
    return look(path, "Token", `${name} #${number}`, `assets/${assetId}/${number}`);
  });
  const lookups = LOOKUPS.filter(([form]) => form.test(text)).map(([, kind, path, page]) =>
    look(path.replace("*", at), kind, text, page.replace("*", at)),
  );
  if (REFERENCE.test(text)) lookups.push(usersWith(at));
  return (await Promise.all([...lookups, ...ofAssets])).flat();
}

async function usersWith(reference: string): Promise<readonly Found[]> {
  const users = await orNull(readAll<User>(`/api/v1/users?limit=100&reference=${reference}`));
  return (users ?? []).map(({ userId, reference }) => ["User", reference ?? userId, `users/${userId}`]);
}

const FOUND: readonly Column<Found>[] = [
  ["Kind", ([kind]) => kind],
  ["Name", ([, name, page]) => <a href={`#/${page}`}>{name}</a>],
];

/** Leads to the page of what a text names, at once if it names one thing. */
export function Find() {
  const { q = "" } = useFilters();
  const load = async () => {
    const found = await find(q);
    const [only, second] = found;
    if (only !== undefined && second === undefined) location.replace(`#/${only[2]}`);
    return found;
  };
  return (
    <>
      <Title>{`Found for ${q}`}</Title>
      <Shown of={useLoad(load, q)}>
        {(found) => (
          <Table
            label="Found"
            columns={FOUND}
            entries={found}
            empty="Nothing of your application. Give a vault, transaction, batch or token id, an address, a user, or a whole reference."
          />
        )}
      </Shown>
    </>
  );
}
