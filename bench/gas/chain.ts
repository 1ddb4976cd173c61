import { network } from "hardhat";
import {
  type Address,
  concatHex,
  custom,
  type Hex,
  keccak256,
  parseEventLogs,
  type TypedDataDefinition,
  toHex,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { packedConsents } from "../../core/l1/arguments.ts";
import { type OwnToken, TOKEN_CONTRACT, tokenArguments } from "../../core/l1/own-token.ts";
import type { Standard } from "../../core/model.ts";
import type { BatchHeader } from "../../core/ports.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { encodeAttestation } from "../../core/protocol/attestation.ts";
import { manifestHash } from "../../core/protocol/blob-batch.ts";
import { assetsHash, consentTypedData, type IssuerConsent } from "../../core/protocol/consent.ts";
import { compactSignature } from "../../core/protocol/signature.ts";
import { deployContract } from "../../scripts/deploy/deployer.ts";
import { registerToken } from "../../scripts/deploy/token.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";

export const CHAIN_ID = 31_337n;
const THRESHOLD = 3;
const MEMBERS = 5;

/** A key that is the same in every run, so the figures are too. */
export function account(name: string) {
  return privateKeyToAccount(keccak256(toHex(name)));
}

/** Addresses without a balance, the same in every run. */
export function owners(count: number, name: string): Address[] {
  return Array.from(
    { length: count },
    (_, i) => keccak256(toHex(`${name} ${i}`)).slice(0, 42) as Address,
  );
}

export type GasChain = Awaited<ReturnType<typeof openGasChain>>;

/**
 * An in-process chain with the settlement contract, a committee of 3 of 5, and a registered token
 * of each standard.
 */
export async function openGasChain() {
  const { viem, networkHelpers, provider } = await network.create("local");
  const client = await viem.getPublicClient();
  const by = { account: OPERATOR, client, transport: custom(provider), chainId: Number(CHAIN_ID) };
  const operator = OPERATOR.address;
  const receiptOf = async (hash: Hex | Promise<Hex>) => {
    const receipt = await client.getTransactionReceipt({ hash: await hash });
    if (receipt.status !== "success") throw new Error(`transaction ${await hash} failed`);
    return receipt;
  };
  const gasOf = async (hash: Hex | Promise<Hex>) => Number((await receiptOf(hash)).gasUsed);
  const members = Array.from({ length: MEMBERS }, (_, i) => account(`member ${i}`));
  members.sort((a, b) => (a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1));
  const committee = { members: members.map(({ address }) => address), threshold: THRESHOLD };
  const transfers = await deployContract(by, "Transfers", []);
  const makings = await deployContract(by, "Makings", []);
  const roles = {
    admin: operator,
    guardian: operator,
    operator,
    committee: committee.members,
    threshold: THRESHOLD,
  };
  const lent = { transfersCode: transfers.address, makingsCode: makings.address };
  const terms = { ...roles, changeDelay: 604_800n, maturity: 0n, ...lent };
  const created = await deployContract(by, "StateCommitment", [terms]);
  const state = await viem.getContractAt("StateCommitment", created.address);
  const settlement = { chainId: CHAIN_ID, contract: state.address };
  /** A token of this project whose minter is `minter`. */
  const deploy = async (standard: Standard, terms: Partial<OwnToken>, minter = state.address) => {
    const royalty = { receiver: operator, fraction: 0n };
    const own = {
      standard,
      name: "Card",
      symbol: "CARD",
      uri: "ipfs://cards/",
      royalty,
      admin: operator,
      ...terms,
    };
    const deployed = await deployContract(
      by,
      TOKEN_CONTRACT[standard],
      tokenArguments(minter, own),
    );
    return { standard, ...deployed, type: assetType(standard, deployed.address, 1n) };
  };
  const register = async (token: Awaited<ReturnType<typeof deploy>>, at = state.address) => {
    const registration = {
      ...token,
      chainId: CHAIN_ID,
      quantum: 1n,
      mintingBlobScheme: "mintmark",
    } as const;
    return { ...token, gas: await gasOf((await registerToken(by, at, registration)) as Hex) };
  };
  const issuer = account("issuer");
  const deployed = [
    await deploy("erc20", { name: "Coin", symbol: "COIN" }),
    await deploy("erc721", {}),
    await deploy("erc1155", { name: "Item", symbol: "ITEM", uri: "ipfs://items/{id}" }),
    await deploy("erc721", { name: "Sword", symbol: "S", uri: "", issuer: issuer.address }),
  ] as const;
  const erc20 = await register(deployed[0]);
  const erc721 = await register(deployed[1]);
  const erc1155 = await register(deployed[2]);
  const issued = await register(deployed[3]);
  return {
    ...{ viem, networkHelpers, client, by, gasOf, operator, committee, state, settlement },
    created: { transfers, makings, state: created },
    /** One more token, whose minter and registry is the settlement contract, or another. */
    token: async (standard: Standard, terms: Partial<OwnToken>, at = state.address) =>
      register(await deploy(standard, terms, at), at),
    tokens: { erc20, erc721, erc1155, issued },
    header: async (hash: Hex | Promise<Hex>): Promise<BatchHeader> => {
      const { logs } = await receiptOf(hash);
      const [event] = parseEventLogs({ abi: state.abi, eventName: "BatchCommitted", logs });
      if (event === undefined) throw new Error("the commit emitted no event");
      return event.args;
    },
    /** The signatures of as many members as must sign. */
    attest: async (typedData: TypedDataDefinition): Promise<Hex> => {
      const signed = members.slice(0, THRESHOLD).map((member) => member.signTypedData(typedData));
      const signatures = (await Promise.all(signed)).map(compactSignature);
      const indexed = signatures.map((signature, memberIndex) => ({ memberIndex, ...signature }));
      return encodeAttestation({ ...committee, signatures: indexed });
    },
    /** The issuer's consent to a batch whose one asset is the issued one, packed. */
    consentTo: async (
      batch: Pick<IssuerConsent, "mode" | "batchNumber" | "vaultCount" | "content">,
    ): Promise<Hex> => {
      const assets = [{ chainId: CHAIN_ID, assetType: issued.type, issuerEpoch: 1n }];
      const hashes = { manifest: manifestHash(assets), assetsHash: assetsHash(assets) };
      const consent = { ...batch, ...hashes };
      const { r, vs } = compactSignature(
        await issuer.signTypedData(consentTypedData(settlement, consent)),
      );
      const signature = concatHex([r, vs]);
      return packedConsents(assets, [
        { issuer: issuer.address, assets, signature, byWallet: false },
      ]);
    },
    /** Lets the chain send transactions of an account. */
    act: async (owner: Address): Promise<{ readonly account: Address }> => {
      await networkHelpers.impersonateAccount(owner);
      await networkHelpers.setBalance(owner, 10n ** 18n);
      return { account: owner };
    },
  };
}
