import {
  bytesToHex,
  tipIdOf,
  tipOwnerOf,
  unpackVaultId,
  vaultLeaf,
  verifyVaultProof,
} from "../../../core/protocol/verifier.ts";
import { counted, grouped, mintingBlobText } from "../shared/format.ts";
import { code, type Fact, Facts, Later, Notice, OnDemand } from "../shared/parts.tsx";
import { Problem } from "../shared/request.ts";
import { Amount, isImage, Picture, readMetadata, textIn } from "../shared/tokens.tsx";
import { type OwnVault, type Proof, readHistory, readProof } from "./api.ts";
import { type Check, Checks, judged, keptByL1, same } from "./checks.tsx";
import {
  accordingToL1,
  l1,
  type Registration,
  type SettlementContract,
  settlement,
} from "./source.tsx";
import { fateOf, HistoryFacts, hopChecks } from "./transfer-view.tsx";

export async function vaultView(vaultId: string) {
  const heading = (
    <h1>
      Vault <span class="id">{vaultId}</span>
    </h1>
  );
  const proof = await readProof(vaultId).catch((error: unknown) => {
    if (error instanceof Problem && error.code === "proof_not_ready") return null;
    throw error;
  });
  if (proof === null) {
    return (
      <>
        {heading}
        <Notice>
          This vault's batch is still open. Its proof exists once the batch is sealed; look again in
          a moment.
        </Notice>
      </>
    );
  }
  const { header } = proof;
  const history = await readHistory(vaultId);
  // A vault that transfers made is the minted one with another owner, and perhaps a part of it.
  const vault = history.vault ?? proof.vault;
  const { mode, batchNumber, slot } = unpackVaultId(vault.vaultId);
  const batchId = `${mode}-${batchNumber}`;
  const taken = history.after.find(({ status }) => status !== "failed");
  const siblings = proof.siblings.map((hash, i): Fact => [`Sibling ${i + 1}`, code(hash)]);
  return (
    <>
      {heading}
      <p class="lead">
        Slot {slot} of <a href={`#/batches/${batchId}`}>{batchId}</a>.
      </p>
      {taken && (
        <Notice>{`A transfer takes this vault: ${fateOf(taken.to)} (${taken.status}).`}</Notice>
      )}
      <Checks of={[...vaultChecks(proof), ...hopChecks(proof)]} verdicts={verdictsOf(proof)} />
      <h2>Content</h2>
      <Facts
        of={[
          ["Owner", code(vault.owner)],
          ["Amount", <Amount key="amount" of={vault} />],
          ["Minting blob", mintingBlobText(vault.mintingBlob)],
          ["Asset type", code(vault.assetType)],
          ["Chain", String(vault.chainId)],
        ]}
      />
      <HistoryFacts of={history} />
      <Later load={() => metadataOf(vault)} />
      <Later load={() => payout({ vault, header }, taken !== undefined)} />
      <details>
        <summary>The whole path</summary>
        <Facts of={[["Leaf", code(proof.leaf)], ...siblings, ["Root", code(proof.batchRoot)]]} />
      </details>
      <p>
        Yours? <a href="#/owner">Sign in with your wallet</a> to download its exit kit.
      </p>
    </>
  );
}

function verdictsOf({ header, hops }: Proof) {
  const isWaiting =
    header === null || hops.some(({ header: { committedAt } }) => committedAt === 0n);
  return {
    holds: accordingToL1("This vault is on L1"),
    fails: "This proof is wrong: L1 does not have this vault.",
    open: isWaiting
      ? "This vault is sealed. Its commit on L1 is still to come."
      : "This vault has not been compared with L1.",
  };
}

/** Checks that a vault is on L1 as its owner's list shows it. */
export async function proofOfOwn(shown: OwnVault) {
  if (shown.standing === "arriving")
    return <p class="quiet">Its proof exists once its batch is sealed.</p>;
  const proof = await readProof(String(shown.vaultId));
  return (
    <Checks
      of={[contentCheck(shown, proof), ...vaultChecks(proof), ...hopChecks(proof)]}
      verdicts={verdictsOf(proof)}
    />
  );
}

/** A transfer can have split the amount. Then the units of the last vault are for L1 to say. */
function contentCheck(shown: OwnVault, proof: Proof): Check {
  const { vault, hops } = proof;
  return [
    "The proof is of the token that this page shows, and of you.",
    () => {
      const isSame =
        tipIdOf(proof) === shown.vaultId &&
        tipOwnerOf(proof) === shown.owner &&
        vault.chainId === shown.chainId &&
        vault.assetType === shown.assetType &&
        vault.mintingBlob === shown.mintingBlob &&
        (hops.length > 0 || vault.amount === shown.amount);
      return judged(isSame, `vault ${tipIdOf(proof)} of ${tipOwnerOf(proof)}`);
    },
  ];
}

/** Name and image by the token's metadata, which no proof covers. */
async function metadataOf(vault: Proof["vault"]) {
  const metadata = await readMetadata(vault);
  if (metadata === null) return null;
  const [name, image] = [textIn(metadata, "name"), textIn(metadata, "image")];
  return (
    <>
      <h2>Its metadata says</h2>
      <Facts
        of={[
          ["Name", name],
          ["Description", textIn(metadata, "description")],
        ]}
      />
      {image && (
        <p>{isImage(image) ? pictureOf(image, name ?? "The token") : <code>{image}</code>}</p>
      )}
    </>
  );
}

/** A button fetches an image from its host. */
function pictureOf(source: string, name: string) {
  const picture = <Picture source={source} name={name} asked />;
  return source.startsWith("data:") ? (
    picture
  ) : (
    <OnDemand text="Show the image" load={async () => picture} />
  );
}

function vaultChecks(proof: Proof): Check[] {
  const { vault, header, batchRoot, leaf, siblings, assetPath } = proof;
  const place = unpackVaultId(vault.vaultId);
  return [
    [
      "The vault's content, with its asset's place in the batch, hashes to its leaf.",
      () => same(bytesToHex(vaultLeaf(vault, assetPath.index)), leaf),
    ],
    [
      "The proof leads from the vault to the batch root.",
      () => {
        const steps =
          siblings.length === 0
            ? "the only leaf is the root"
            : counted(siblings.length, "word of 32 bytes", "words of 32 bytes");
        return judged(verifyVaultProof(batchRoot, proof), `${steps}: ${batchRoot}`);
      },
    ],
    [
      "L1 keeps the hash of that root, with its count, time and sequence.",
      () => {
        if (header && (header.batchRoot !== batchRoot || header.vaultCount !== proof.vaultCount))
          return judged(false, "The header belongs to another batch.");
        return keptByL1(header, place);
      },
    ],
  ];
}

/**
 * L1's data about the vault's token, and what it has paid, or the contract that pays on another
 * chain.
 */
async function payout({ vault, header }: Pick<Proof, "vault" | "header">, isTaken: boolean) {
  const contract = await l1();
  const registered =
    header === null ? null : await contract?.registration(vault.chainId, vault.assetType);
  if (!contract || !registered) return null;
  return (
    <>
      <h2>On L1</h2>
      <Facts
        of={[
          ["Token", code(registered.token)],
          ["Standard", registered.standard.replace("erc", "ERC-")],
          ["Base units", grouped(`${vault.amount * registered.quantum}`)],
          ...(await paidOut(contract, vault, registered, isTaken)),
        ]}
      />
    </>
  );
}

async function paidOut(
  contract: SettlementContract,
  vault: Proof["vault"],
  { standard, token, quantum }: Registration,
  isTaken: boolean,
): Promise<Fact[]> {
  const { chainId, portals } = await settlement();
  if (String(vault.chainId) === chainId) {
    const withdrawn = await contract.withdrawn(vault.vaultId, standard);
    const amounts = [
      <Amount key="paid" of={vault} amount={withdrawn} />,
      " of ",
      <Amount key="all" of={vault} />,
    ];
    const paid: Fact = ["Withdrawn", amounts];
    if (withdrawn >= vault.amount) return [paid];
    if (isTaken && (await contract.isSpent(vault.vaultId))) {
      return [paid, ["Can be paid now", "no, a transfer on L1 takes it"]];
    }
    const refusal = await contract.refusal(
      token,
      vault.owner,
      (vault.amount - withdrawn) * quantum,
      vault.mintingBlob,
    );
    const answer =
      refusal === null ? "yes, its token takes it" : `refused by its token: ${refusal}`;
    return [paid, ["Can be paid now", answer]];
  }
  const portal = portals.find((each) => each.chainId === String(vault.chainId));
  const where = portal ? (
    <code>{portal.contract}</code>
  ) : (
    "by a mirror that this server does not name"
  );
  return [[`Paid on chain ${vault.chainId}`, where]];
}
