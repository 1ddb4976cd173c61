import { invalid, MintmarkError } from "../errors.ts";
import type { Address, Standard } from "../model.ts";
import type {
  L1Enterer,
  L1Reader,
  L1Receipt,
  L1Renewer,
  L1SendOptions,
  L1Tokens,
} from "../ports.ts";

/** Tokens on L1, the account that holds them, and the chain. */
export interface EntryOptions extends L1SendOptions {
  readonly l1: L1Enterer &
    Pick<L1Renewer, "hasMakings"> &
    Pick<L1Reader, "settlement" | "token" | "supplyCap" | "holding"> &
    Pick<L1Tokens, "isMinter">;
  /** The account that `l1` sends from: it holds the tokens. */
  readonly account: Address;
  /** Who gets the vault. Default: the account. */
  readonly owner?: Address;
  readonly token: Address;
  readonly standard: Standard;
  /** Base units in one unit; 1 for ERC-721 and ERC-1155. */
  readonly quantum: bigint;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
  /** 1 for an ERC-721. */
  readonly units: bigint;
}

/**
 * Brings tokens back from L1: burns them, and L1 makes a vault of them for their owner. What L1
 * would refuse is refused here, before anything is sent.
 *
 * @throws MintmarkError `validation_failed` for a token that cannot come back;
 *   `insufficient_balance` when the account holds less; `l1_failed` with the token's reason
 *
 * @example
 * const card = { token, standard: "erc721", quantum: 1n, tokenId: 7n, units: 1n } as const;
 * await enterToken({ l1, account, ...card });
 */
export async function enterToken(options: EntryOptions): Promise<L1Receipt> {
  const { l1, account, owner = account, token, standard, tokenId, quantum, units } = options;
  await requireMakings(l1);
  await requireEnterable(l1, token, standard);
  const amount = units * quantum;
  const held = await l1.holding(token, standard, account, tokenId);
  if (held < amount) {
    const id = tokenId === null ? "" : ` id ${tokenId}`;
    const detail = `${account} holds ${held} base units of ${token}${id}, not ${amount}: sign with the account that holds them`;
    throw new MintmarkError("insufficient_balance", detail);
  }
  return l1.enter({ token, standard, owner, tokenId, amount }, options);
}

/** Throws `validation_failed` for a contract that makes no vaults. */
export async function requireMakings(
  l1: Pick<EntryOptions["l1"], "hasMakings" | "settlement">,
): Promise<void> {
  if (await l1.hasMakings()) return;
  const { chainId, contract } = l1.settlement;
  throw invalid(
    `${contract} on chain ${chainId} makes no vaults, because it was deployed without transfers: its tokens stay on L1`,
  );
}

/** Says before any gas is paid why the token would refuse. */
async function requireEnterable(
  l1: EntryOptions["l1"],
  token: Address,
  standard: Standard,
): Promise<void> {
  const { contract } = l1.settlement;
  const { minterLocked } = await l1.token(token, standard);
  if (minterLocked === null)
    throw invalid(
      `${token} is no mintable token of this project: call the \`enter\` of its escrow, after an approval`,
    );
  if (!(await l1.isMinter(token)))
    throw invalid(`${token} is minted by another contract than ${contract}`);
  if (!minterLocked)
    throw invalid(
      `the minter of ${token} is not locked, so nothing comes back yet: ask its admin to call lockMinter()`,
    );
  const cap = standard === "erc20" ? await l1.supplyCap(token) : null;
  if (cap !== null)
    throw invalid(
      `${token} has a cap of ${cap} base units, so its tokens never come back: keep them on L1`,
    );
}
