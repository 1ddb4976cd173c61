import {
  batchHeaderHash,
  bytesToHex,
  unpackVaultId,
  vaultLeaf,
  verifyVaultProof,
} from "../../../core/protocol/verifier.ts";
import { blobText, counted } from "../shared/format.ts";
import { Problem, type Proof, readHistory, readMetadata, readProof } from "./api.ts";
import { type Check, checkList } from "./checks.ts";
import { type Child, code, el, facts, fill, link, notice } from "./dom.ts";
import type { Registration, SettlementContract } from "./l1.ts";
import { accordingToL1, l1, settlement, sourceName } from "./source.ts";
import { showImage } from "./tokens.ts";
import { fateOf, historyFacts, hopChecks } from "./transfer-view.ts";

/** One vault: its content, and its proof checked here. */
export async function vaultView(vaultId: string): Promise<Node[]> {
  const heading = el("h1", {}, "Vault ", el("span", { class: "id" }, vaultId));
  const proof = await readProof(vaultId).catch((error: unknown) => {
    if (error instanceof Problem && error.code === "proof_not_ready") return null;
    throw error;
  });
  if (proof === null) {
    return [
      heading,
      notice("This vault's batch is still open. Its proof exists once the batch is sealed; look again in a moment."),
    ];
  }
  const { header, hops } = proof;
  const history = await readHistory(vaultId);
  // A vault that transfers made is the minted one with another owner, and perhaps a part of it.
  const vault = history.vault ?? proof.vault;
  const { mode, batchNumber, slot } = unpackVaultId(vault.vaultId);
  const onL1 = el("div", {});
  const taken = history.after.find(({ status }) => status !== "failed");
  void fill(onL1, async () => payout({ vault, header }, taken !== undefined));
  const token = el("div", {});
  void fill(token, async () => issuersWord(vault.vaultId));
  return [
    heading,
    el(
      "p",
      { class: "lead" },
      "Slot ",
      String(slot),
      " of ",
      link(`#/batches/${mode}-${batchNumber}`, `${mode}-${batchNumber}`),
      ".",
    ),
    ...(taken === undefined ? [] : [notice(`A transfer takes this vault: ${fateOf(taken.to)} (${taken.status}).`)]),
    checkList([...vaultChecks(proof), ...hopChecks(proof)], {
      holds: accordingToL1("This vault is on L1"),
      fails: "This proof is wrong: L1 does not have this vault.",
      open:
        header === null || hops.some(({ header: { committedAt } }) => committedAt === 0n)
          ? "This vault is sealed. Its commit on L1 is still to come."
          : "This vault has not been compared with L1.",
    }),
    el("h2", {}, "Content"),
    facts([
      ["Owner", code(vault.owner)],
      ["Amount", vault.amount.toLocaleString()],
      ["Minting blob", blobText(vault.blob)],
      ["Asset type", code(vault.assetType)],
      ["Chain", String(vault.chainId)],
    ]),
    ...historyFacts(history),
    token,
    onL1,
    path(proof),
    el("p", {}, "Yours? ", link("#/owner", "Sign in with your wallet"), " to download its exit kit."),
  ];
}

/** Name and image by the token's issuer, which no proof covers. */
async function issuersWord(vaultId: bigint): Promise<Node[]> {
  const metadata = await readMetadata(vaultId);
  if (metadata === null) return [];
  const { name, description, image } = metadata;
  const place = el("p", {});
  if (typeof image === "string") place.append(showImage(image, typeof name === "string" ? name : "The token"));
  const said = [
    ["Name", name],
    ["Description", description],
  ].filter((fact): fact is [string, string] => typeof fact[1] === "string");
  return [el("h2", {}, "The issuer says"), facts(said), place];
}

function vaultChecks(proof: Proof): Check[] {
  const { vault, header, batchRoot, leaf, siblings } = proof;
  const { mode, batchNumber } = unpackVaultId(vault.vaultId);
  return [
    {
      claim: "The vault's content hashes to its leaf.",
      async test() {
        const computed = bytesToHex(vaultLeaf(vault));
        return [computed === leaf ? "holds" : "fails", computed];
      },
    },
    {
      claim: "The proof leads from the vault to the batch root.",
      async test() {
        const steps =
          siblings.length === 0
            ? "the only leaf is the root"
            : counted(siblings.length, "word of 32 bytes", "words of 32 bytes");
        return [verifyVaultProof(batchRoot, proof) ? "holds" : "fails", `${steps}: ${batchRoot}`];
      },
    },
    {
      claim: "L1 keeps the hash of that root, with its count, time and sequence.",
      async test() {
        if (header === null) return ["open", "L1 has not committed the batch yet."];
        if (header.batchRoot !== batchRoot || header.vaultCount !== proof.vaultCount)
          return ["fails", "The header belongs to another batch."];
        const contract = await l1();
        if (contract === null) return ["open", "Choose below how to read L1."];
        const kept = await contract.batchHeaderHash(mode, batchNumber);
        return [batchHeaderHash(header) === kept ? "holds" : "fails", `${kept}, says ${sourceName()}`];
      },
    },
  ];
}

/**
 * L1's data about the vault's token, and the units paid out; for another chain's token, the contract that pays there.
 */
async function payout({ vault, header }: Pick<Proof, "vault" | "header">, isTaken: boolean): Promise<Node[]> {
  const contract = await l1();
  const registered = header === null ? null : await contract?.registration(vault.chainId, vault.assetType);
  if (!contract || !registered) return [];
  return [
    el("h2", {}, "On L1"),
    facts([
      ["Token", code(registered.token)],
      ["Standard", registered.standard.replace("erc", "ERC-")],
      ["Base units", (vault.amount * registered.quantum).toLocaleString()],
      ...(await paidOut(contract, vault, registered, isTaken)),
    ]),
  ];
}

async function paidOut(
  contract: SettlementContract,
  vault: Proof["vault"],
  { standard, token, quantum }: Registration,
  isTaken: boolean,
): Promise<(readonly [string, Child])[]> {
  const { chainId, portals } = await settlement();
  if (String(vault.chainId) === chainId) {
    const withdrawn = await contract.withdrawn(vault.vaultId, standard);
    const paid = ["Withdrawn", `${withdrawn.toLocaleString()} of ${vault.amount.toLocaleString()}`] as const;
    if (withdrawn >= vault.amount) return [paid];
    if (isTaken && (await contract.isSpent(vault.vaultId))) {
      return [paid, ["Can be paid now", "no, a transfer on L1 takes it"]];
    }
    const refusal = await contract.refusal(token, vault.owner, (vault.amount - withdrawn) * quantum, vault.blob);
    return [
      paid,
      ["Can be paid now", refusal === null ? "yes, its token takes it" : `refused by its token: ${refusal}`],
    ];
  }
  const portal = portals.find((each) => each.chainId === String(vault.chainId));
  const where = portal ? code(portal.contract) : "by a mirror that this server does not name";
  return [[`Paid on chain ${vault.chainId}`, where]];
}

function path({ leaf, siblings, batchRoot }: Proof): HTMLElement {
  const steps = [leaf, ...siblings, batchRoot];
  const names = ["Leaf", ...siblings.map((_, i) => `Sibling ${i + 1}`), "Root"];
  return el(
    "details",
    {},
    el("summary", {}, "The whole path"),
    facts(steps.map((hash, i) => [names[i] ?? "", code(hash)] as const)),
  );
}
