import { network } from "hardhat";
import { type Address, concatHex, type Hex, keccak256, maxUint256, toHex, zeroAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { packedConsents } from "../../core/l1/arguments.ts";
import type { Hash, Mode, Standard } from "../../core/model.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { compactSignature } from "../../core/protocol/attestation.ts";
import { assetsHash, consentTypedData } from "../../core/protocol/consent.ts";

export const CHAIN_ID = 31_337n;
const STANDARD = { erc20: 1, erc721: 2, erc1155: 3 } as const;
const SCHEME_MINTMARK = 1;
const THRESHOLD = 3;
const MEMBERS = 5;

/** A key that is the same in every run, so the figures are too. */
export function account(name: string) {
  return privateKeyToAccount(keccak256(toHex(name)));
}

/** Addresses without a balance, the same in every run. */
export function owners(count: number, name: string): Address[] {
  return Array.from({ length: count }, (_, i) => keccak256(toHex(`${name} ${i}`)).slice(0, 42) as Address);
}

export type GasChain = Awaited<ReturnType<typeof openGasChain>>;

/** An in-process chain with the settlement contract, a committee of 3 of 5, and a registered token of each standard. */
export async function openGasChain() {
  const connection = await network.create("local");
  const { viem } = connection;
  const client = await viem.getPublicClient();
  const [deployer] = await viem.getWalletClients();
  if (deployer === undefined) throw new Error("the chain has no accounts");
  const operator = deployer.account.address;
  const gasOf = async (hash: Promise<Hex>): Promise<number> => {
    const { gasUsed, status } = await client.getTransactionReceipt({ hash: await hash });
    if (status !== "success") throw new Error(`transaction ${await hash} failed`);
    return Number(gasUsed);
  };
  const members = Array.from({ length: MEMBERS }, (_, i) => account(`member ${i}`)).sort((a, b) =>
    a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1,
  );
  const config = {
    admin: operator,
    guardian: operator,
    operator,
    committee: members.map(({ address }) => address),
    threshold: THRESHOLD,
    changeDelay: 604_800n,
    maturity: 0n,
    transfersCode: (await viem.deployContract("Transfers")).address,
  };
  const state = await viem.deployContract("StateCommitment", [config]);
  const roles = [operator, state.address, zeroAddress] as const;
  const noRoyalty = { receiver: operator, fraction: 0n };
  const coin = await viem.deployContract("MintableERC20", ["Coin", "COIN", maxUint256, 1n, ...roles, false]);
  const card = await viem.deployContract("MintableERC721", [
    "Card",
    "CARD",
    "ipfs://cards/",
    SCHEME_MINTMARK,
    noRoyalty,
    ...roles,
    false,
  ]);
  const item = await viem.deployContract("MintableERC1155", [
    "Item",
    "ITEM",
    "ipfs://items/{id}",
    SCHEME_MINTMARK,
    noRoyalty,
    ...roles,
    false,
  ]);
  const issuer = account("issuer");
  const consented = [operator, state.address, issuer.address] as const;
  const sword = await viem.deployContract("MintableERC721", [
    "Sword",
    "S",
    "",
    SCHEME_MINTMARK,
    noRoyalty,
    ...consented,
    false,
  ]);
  const register = async (standard: Standard, token: Address): Promise<{ type: Hash; gas: number }> => ({
    gas: await gasOf(state.write.registerAsset([STANDARD[standard], CHAIN_ID, token, 1n, SCHEME_MINTMARK])),
    type: assetType(standard, token, 1n),
  });
  const [erc20, erc721, erc1155, issued] = [
    await register("erc20", coin.address),
    await register("erc721", card.address),
    await register("erc1155", item.address),
    await register("erc721", sword.address),
  ];
  return {
    connection,
    viem,
    client,
    gasOf,
    state,
    transfersCode: config.transfersCode,
    settlement: { chainId: CHAIN_ID, contract: state.address },
    tokens: { coin, card, item },
    types: { erc20: erc20.type, erc721: erc721.type, erc1155: erc1155.type, issued: issued.type },
    registrationGas: { plain: erc721.gas, issued: issued.gas },
    /** The issuer's consent to a batch whose one asset is the issued one, packed. */
    consentTo: async (mode: Mode, batchNumber: number, content: Hash): Promise<Hex> => {
      const assets = [{ chainId: CHAIN_ID, assetType: issued.type, issuerEpoch: 1n }];
      const consent = { mode, batchNumber, content, assetsHash: assetsHash(assets) };
      const typedData = consentTypedData({ chainId: CHAIN_ID, contract: state.address }, consent);
      const { r, vs } = compactSignature(await issuer.signTypedData(typedData));
      const signature = concatHex([r, vs]);
      return packedConsents(assets, [{ issuer: issuer.address, assets, signature, byWallet: false }]);
    },
    committee: { members, threshold: THRESHOLD },
  };
}
