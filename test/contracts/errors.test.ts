import hre from "hardhat";
import {
  bytesToHex,
  type ContractErrorName,
  concat,
  encodeFunctionData,
  type Hex,
  pad,
  slice,
  toHex,
  zeroAddress,
  zeroHash,
} from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import type { IStateCommitment$Type } from "../../artifacts/contracts/interfaces/IStateCommitment.sol/artifacts.js";
import { encodeBatchData } from "../../core/protocol/batch-encoder.ts";
import {
  type CommittedBatch,
  commitRollup,
  commitValidium,
  entry,
  proofOf,
  provenArgs,
  sealedRoot,
} from "./fixture/batches.ts";
import { attest } from "./fixture/committee.ts";
import { assetOf, CHANGE_DELAY, type Deployment, openChain, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { commitTransfers, exitArgs, give, hopOf, LATER, registerTransferable } from "./fixture/transfers.ts";
import {
  BY_CALLER,
  batchArgs,
  cancelArgs,
  ITEM_GAS,
  listed,
  type Request,
  request,
  SOME_TERMS,
  signed,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
type ErrorName = ContractErrorName<IStateCommitment$Type["abi"]>;

const by = (d: Deployment, actor: keyof Deployment["actors"]) => ({ account: d.actors[actor].account });
const ownerOf = (d: Deployment) => d.actors.owner.account.address;
const register = (
  d: Deployment,
  standard: number,
  chainId: bigint,
  token: Hex,
  quantum: bigint,
  scheme = SCHEME.imx as number,
) => d.state.write.registerAsset([standard, chainId, token, quantum, scheme]);
const withdraw = (d: Deployment, asked: Request, actor: keyof Deployment["actors"] = "owner") =>
  d.state.write.withdraw(withdrawArgs(asked), by(d, actor));
const CONTENT = toHex(1, { size: 32 });
const attestation = async (d: Deployment, signers?: readonly number[]) => {
  const history = await d.state.read.history();
  const batch = { history, batchNumber: 0, batchRoot: sealedRoot("validium", [], CONTENT), vaultCount: 1 };
  return attest(d, { ...batch, dataHash: zeroHash, epoch: 0n }, signers ? { signers } : {});
};
const commitContent = async (
  d: Deployment,
  signatures: Hex,
  content: Hex = CONTENT,
  vaultCount = 1,
  assets: Hex = "0x",
) =>
  d.state.write.commitValidiumBatch(
    [await d.state.read.history(), 0n, content, vaultCount, zeroHash, assets, signatures, "0x"],
    by(d, "operator"),
  );
const commitData = async (d: Deployment, batchNumber = 0n, history?: Hex) =>
  d.state.write.commitRollupBatch(
    [history ?? (await d.state.read.history()), "0x", batchNumber, bytesToHex(encodeBatchData([coins(d)]))],
    by(d, "operator"),
  );
const coins = (d: Deployment) => entry(d.assets.coin, ownerOf(d), "", 5n);
const card = (d: Deployment) => entry(d.assets.card, ownerOf(d), "1");
const withdrawCoins = async (d: Deployment, change: Partial<Request>) =>
  withdraw(d, request(await commitRollup(d, [coins(d), coins(d)]), 0, change));
const withdrawLeaf = async (d: Deployment, slot: ReturnType<typeof entry>) =>
  withdraw(d, request(await commitValidium(d, [slot]), 0));
/** Five coins that can be transferred, committed. */
const committedCoins = async (d: Deployment) =>
  commitRollup(d, [entry(await registerTransferable(d, "erc20"), ownerOf(d), "", 5n)]);
/** A record of the batch's first vault, signed by nobody. */
const moved = async (d: Deployment, { vaults }: CommittedBatch) => {
  const transfers = [give(vaults[0]?.vaultId ?? 0n, first)];
  return hopOf(await commitTransfers(d, [{ transfers, deadline: LATER, signature: "0x" }]), 0);
};
const session = (d: Deployment, limit = 1n) =>
  d.state.write.authorizeSession([ownerOf(d), first, LATER, limit, 0n, "0x"], by(d, "owner"));
const [first, second] = [
  "0x0000000000000000000000000000000000000001",
  "0x0000000000000000000000000000000000000002",
] as const;

/** How to meet each error of the contract's interface. A new error does not compile here until it has its way. */
const WAYS: Record<ErrorName, (d: Deployment) => Promise<unknown>> = {
  AssetInvalid: (d) => register(d, STANDARD.none, 1n, first, 1n),
  AssetAlreadyRegistered: (d) => register(d, STANDARD.erc721, 31_337n, d.assets.card.token, 1n),
  AssetNotRegistered: (d) => commitRollup(d, [{ ...coins(d), chainId: 5n }]),
  BatchBeforeRegistration: async (d) => {
    const { address } = await d.viem.deployContract("RevertingToken");
    const batch = await commitValidium(d, [entry(assetOf("erc20", address), ownerOf(d))], []);
    await d.register("erc20", address);
    return withdraw(d, request(batch, 0));
  },
  QuantumInvalid: (d) => register(d, STANDARD.erc20, 1n, first, 0n),
  StandardMismatch: async (d) => {
    const token = await d.mintable.erc1155();
    return register(d, STANDARD.erc721, 31_337n, token.address, 1n, SCHEME.mintmark);
  },
  QuantumMismatch: async (d) => {
    const token = await d.mintable.erc20({ quantum: 7n });
    return register(d, STANDARD.erc20, 31_337n, token.address, 8n, SCHEME.mintmark);
  },
  SchemeMismatch: async (d) => {
    const token = await d.mintable.erc1155();
    return register(d, STANDARD.erc1155, 31_337n, token.address, 1n, SCHEME.raw32);
  },
  NotTokenOwner: async (d) => {
    const token = await d.viem.deployContract("AdministeredToken", [first]);
    return register(d, STANDARD.erc1155, 31_337n, token.address, 1n);
  },
  TokenWithoutCode: (d) => register(d, STANDARD.erc20, 31_337n, second, 1n),
  ChangeNotDue: (d) => d.state.write.activateOperator([first]),
  OperatorNotTimeLocked: async (d) =>
    d.state.write.grantRole([await d.state.read.OPERATOR_ROLE(), first], by(d, "admin")),
  CommitteeInvalid: (d) => d.state.write.scheduleCommittee([[first], 2], by(d, "admin")),
  CommitteeNotAscending: (d) => d.state.write.scheduleCommittee([[second, first], 1], by(d, "admin")),
  CommitteeNotScheduled: async (d) => {
    await d.state.write.scheduleCommittee([[first], 1], by(d, "admin"));
    await d.connection.networkHelpers.time.increase(d.config.changeDelay);
    return d.state.write.activateCommittee([[second], 1]);
  },
  CommittingPaused: async (d) => {
    await d.state.write.pauseCommits([true], by(d, "guardian"));
    return commitData(d);
  },
  NotPlainAccount: async (d) => {
    await d.testClient.setCode({ address: d.config.operator, bytecode: `0xef0100${first.slice(2)}` });
    return commitData(d);
  },
  BatchNumberMismatch: (d) => commitData(d, 1n),
  HistoryMismatch: (d) => commitData(d, 0n, zeroHash),
  StateFull: async (d) => {
    const { index, word } = await headOf(d);
    await d.testClient.setStorageAt({
      address: d.state.address,
      index,
      value: toHex(word | (0xffff_ffffn << 32n), { size: 32 }),
    });
    return commitData(d, 0xffff_ffffn);
  },
  BatchRootZero: (d) => commitContent(d, "0x", zeroHash),
  VaultCountInvalid: (d) => commitContent(d, "0x", undefined, 0),
  AttestationMalformed: (d) => commitContent(d, "0x"),
  CommitteeMismatch: async (d) => commitContent(d, await attestation({ ...d, members: d.members.slice(1) })),
  HeaderMismatch: (d) =>
    withdrawCoins(d, { header: { batchRoot: zeroHash, vaultCount: 1, committedAt: 0n, sequence: 0n } }),
  ProofInvalid: (d) => withdrawCoins(d, { siblings: [] }),
  OtherChain: async (d) => {
    await register(d, STANDARD.erc20, 5n, d.assets.coin.token, 1_000n);
    return withdraw(d, request(await commitRollup(d, [{ ...coins(d), chainId: 5n }]), 0));
  },
  AmountInvalid: (d) => withdrawLeaf(d, { ...coins(d), amount: 1n << 63n }),
  BlobLengthInvalid: (d) => withdrawLeaf(d, { ...coins(d), blob: "0x31" }),
  NotMature: (d) => withdrawLeaf(d, card(d)),
  VaultExhausted: async (d) => {
    const asked = request(await commitRollup(d, [coins(d)]), 0);
    await withdraw(d, asked);
    return withdraw(d, asked);
  },
  QuantityZero: (d) => withdrawCoins(d, { quantity: 0n }),
  QuantityTooLarge: (d) => withdrawCoins(d, { quantity: 6n }),
  RecipientZero: (d) => withdrawCoins(d, { recipient: zeroAddress }),
  NotOwner: async (d) => withdraw(d, request(await commitRollup(d, [coins(d)]), 0), "stranger"),
  AuthorizationExpired: (d) => withdrawCoins(d, { authorization: { deadline: 1n, signature: "0x00" } }),
  AuthorizationIsCancelled: async (d) => {
    const asked = await signed(d, d.actors.owner, request(await commitRollup(d, [coins(d)]), 0));
    await d.state.write.cancelAuthorization(cancelArgs(asked), by(d, "owner"));
    return withdraw(d, asked, "relayer");
  },
  SignatureInvalid: (d) => withdrawCoins(d, { authorization: { deadline: 1n << 63n, signature: "0x00" } }),
  NotListed: async (d) => {
    const [asked] = await listed(d, d.actors.owner, [request(await commitRollup(d, [coins(d)]), 0)]);
    if (asked === undefined) throw new Error("one request is listed");
    const { vault, header, assetPath } = asked;
    const { vaultId, assetType } = vault;
    const terms = await d.state.read.withdrawalTerms([vaultId, assetType, header, assetPath.index, assetPath.siblings]);
    // As its list is, but that one unit was withdrawn before.
    const by = (1n << 161n) | (1n << 160n) | BigInt(vault.owner);
    const args = [terms, vaultId, assetType, by] as const;
    const item = slice(batchArgs([{ ...asked, authorization: BY_CALLER }])[0][0]?.items ?? "0x", 5);
    const call = encodeFunctionData({ abi: d.state.abi, functionName: "withdrawItem", args });
    // The contract's own call, as it makes it for each item.
    const self = d.state.address;
    await d.testClient.impersonateAccount({ address: self });
    return d.publicClient.call({ account: self, to: self, data: concat([call, item]) });
  },
  TokenRefused: async (d) => {
    const token = await d.viem.deployContract("RevertingToken");
    const asset = await d.register("erc20", token.address);
    return withdraw(d, request(await commitRollup(d, [entry(asset, ownerOf(d))]), 0));
  },
  ConsentsMalformed: (d) => commitRollup(d, [coins(d)], async () => "0x0100ffff00"),
  IssuerUnknown: (d) => d.state.write.suspendIssuer([d.assets.card.token], by(d, "admin")),
  NotDuplicates: async (d) => {
    const proof = provenArgs(proofOf(await commitRollup(d, [card(d)]), 0));
    return d.state.write.voidDuplicate([...proof, ...proof]);
  },
  NotSelf: (d) => d.state.write.withdrawItem([SOME_TERMS, 0n, 0n, 0n], by(d, "owner")),
  GasTooLow: async (d) => {
    const asked = request(await commitRollup(d, [coins(d)]), 0);
    return d.state.write.withdrawBatch(batchArgs([asked]), { ...by(d, "owner"), gas: 500_000n });
  },
  NotTransferable: async (d) =>
    d.state.write.withdrawTransferred(exitArgs(await commitRollup(d, [coins(d)]), 0), by(d, "owner")),
  TransferInvalid: async (d) => {
    const batch = await committedCoins(d);
    return d.state.write.withdrawTransferred(exitArgs(batch, 0, { hops: [await moved(d, batch)] }), by(d, "owner"));
  },
  VaultSpent: async (d) => {
    const batch = await committedCoins(d);
    await moved(d, batch);
    return withdraw(d, request(batch, 0));
  },
  Spent: async (d) => {
    const batch = await committedCoins(d);
    await moved(d, batch);
    return moved(d, batch);
  },
  BatchUnknown: (d) => commitTransfers(d, [{ transfers: [give(1n << 20n, first)], deadline: LATER, signature: "0x" }]),
  DeadlinePassed: (d) => commitTransfers(d, [{ transfers: [give(1n, first)], deadline: 1n, signature: "0x" }]),
  TransferDataInvalid: async (d) =>
    d.state.write.commitTransferBatch([await d.state.read.history(), 0n, "0x", "0x"], by(d, "operator")),
  ChangeExpired: async (d) => {
    const { address } = await d.viem.deployContract("IssuedToken", [pad(first), d.config.admin]);
    await d.register("erc721", address);
    await d.state.write.scheduleIssuer([address, first], by(d, "admin"));
    await d.connection.networkHelpers.time.increase(CHANGE_DELAY + 30n * 86_400n + 10n);
    return d.state.write.activateIssuer([address], by(d, "admin"));
  },
  SessionInvalid: (d) => session(d, 0n),
  SessionKeyUsed: async (d) => {
    await session(d);
    return session(d);
  },
  ItemGasTooLow: (d) => d.state.write.withdrawBatch([[], [], ITEM_GAS - 1n], by(d, "owner")),
};

describe("the errors of IStateCommitment", () => {
  let d: Deployment;
  beforeEach(async () => {
    d = await fresh();
  });

  it("are all met here", async () => {
    const { abi } = await hre.artifacts.readArtifact("IStateCommitment");
    const declared = abi.filter(({ type }) => type === "error").map((error) => ("name" in error ? error.name : ""));
    expect(Object.keys(WAYS).toSorted()).toEqual(declared.toSorted());
  });

  it.each(Object.entries(WAYS))("%s", async (name, provoke) => {
    await d.refuses(provoke(d) as Promise<Hex>, name as ErrorName);
  });
});

/** The storage slot that holds counts, sequence, epoch and pause: after one commit of each mode, counts of one and a sequence of two. */
async function headOf(d: Deployment) {
  await commitRollup(d, [coins(d)]);
  await commitValidium(d, [coins(d)]);
  for (let i = 0; i < 64; i++) {
    const index = toHex(i, { size: 32 });
    const word = BigInt((await d.publicClient.getStorageAt({ address: d.state.address, slot: index })) ?? 0);
    if (word === 1n + (1n << 32n) + (2n << 64n)) return { index, word };
  }
  throw new Error("found no slot of counts");
}
