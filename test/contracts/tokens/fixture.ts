import { network } from "hardhat";
import { type Hex, keccak256, maxUint256, toHex, zeroAddress } from "viem";
import { SCHEME } from "../fixture/deployment.ts";

/** In ten-thousandths. */
export const ROYALTY_FRACTION = 250n;
export const CAP = 1_000_000n;

export type TokenDeployment = Awaited<ReturnType<typeof deploy>>;
type Connection = Awaited<ReturnType<typeof network.create>>;

/** One in-process chain, and a function that gives every test the same fresh tokens on it. */
export async function openTokens() {
  const connection = await network.create("local");
  const deployHere = () => deploy(connection);
  return { viem: connection.viem, fresh: () => connection.networkHelpers.loadFixture(deployHere) };
}

async function deploy(connection: Connection) {
  const { viem } = connection;
  const { revertWithCustomError, revertWithCustomErrorWithArgs } = viem.assertions;
  /** The token refuses the call with this error. */
  const refuses = (
    call: Promise<unknown>,
    token: object,
    error: string,
    args?: readonly unknown[],
  ) =>
    args === undefined
      ? revertWithCustomError(call, token as never, error as never)
      : revertWithCustomErrorWithArgs(call, token as never, error as never, args as never);
  const [admin, minter, owner, friend, stranger] = await viem.getWalletClients();
  if (!admin || !minter || !owner || !friend || !stranger)
    throw new Error("the chain has no accounts");
  const roles = [admin.account.address, minter.account.address, zeroAddress] as const;
  const royalty = { receiver: admin.account.address, fraction: ROYALTY_FRACTION };
  const collection = (scheme: number) =>
    viem.deployContract("MintableERC721", [
      "Card",
      "CARD",
      "ipfs://cards/",
      scheme,
      royalty,
      ...roles,
      false,
    ]);
  const items = (scheme: number) =>
    viem.deployContract("MintableERC1155", [
      "Item",
      "ITEM",
      "ipfs://items/{id}",
      scheme,
      royalty,
      ...roles,
      false,
    ]);
  const actors = { admin, minter, owner, friend, stranger };
  return {
    connection,
    actors,
    by: (actor: keyof typeof actors) => ({ account: actors[actor].account }),
    refuses,
    coin: await viem.deployContract("MintableERC20", ["Coin", "COIN", CAP, 1n, ...roles, false]),
    uncapped: await viem.deployContract("MintableERC20", [
      "Coin",
      "COIN",
      maxUint256,
      1n,
      ...roles,
      false,
    ]),
    card: await collection(SCHEME.mintmark),
    imxCard: await collection(SCHEME.imx),
    item: await items(SCHEME.mintmark),
    imxItem: await items(SCHEME.imx),
  };
}

/** The token id of a text that is no decimal, in the mintmark scheme. */
export function hashedId(text: string): bigint {
  return BigInt(keccak256(toHex(text)));
}

/** ERC-165 ids that the tokens answer to. */
export const INTERFACES = {
  erc165: "0x01ffc9a7",
  mintable: "0x19ee6e3f",
  accessControl: "0x7965db0b",
  erc721: "0x80ac58cd",
  erc721Metadata: "0x5b5e139f",
  erc2981: "0x2a55205a",
  erc4906: "0x49064906",
  erc1155: "0xd9b67a26",
  erc1155MetadataUri: "0x0e89341c",
} as const satisfies Record<string, Hex>;

/**
 * The names of the interfaces that a token supports, of those above; none that is not among them.
 */
export async function supported(token: {
  read: { supportsInterface(args: [Hex]): Promise<boolean> };
}): Promise<string[]> {
  const names: string[] = [];
  for (const [name, id] of Object.entries(INTERFACES))
    if (await token.read.supportsInterface([id])) names.push(name);
  if (await token.read.supportsInterface(["0xffffffff"]))
    names.push("0xffffffff, which nobody supports");
  return names;
}
