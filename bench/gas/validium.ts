import { keccak256, toHex } from "viem";
import { packedAssets } from "../../core/l1/arguments.ts";
import { compactSignature, encodeAttestation } from "../../core/protocol/attestation.ts";
import { batchRoot, manifestRoot } from "../../core/protocol/manifest.ts";
import { validiumBatchTypedData } from "../../core/protocol/typed-data.ts";
import { CHAIN_ID, type GasChain, openGasChain } from "./chain.ts";
import { measurement, type Section } from "./measurement.ts";

const BATCHES = 15;
const STEADY_FROM = 8;
const AIM = 95_000;
const AIM_WITH_ISSUER = 98_000;
const VAULTS = 1 << 20;

/** The cost of a validium batch, which does not depend on its size. */
export async function validiumSection(): Promise<Section> {
  const gas = await commits(false);
  const issued = await commits(true);
  return {
    title: "Validium batches",
    method: `The table has the gas of \`commitValidiumBatch\` with a committee of 3 of 5, for a batch of ${VAULTS.toLocaleString("en")} vaults of one asset.
The size does not matter. Figures are means of batches ${STEADY_FROM} to ${BATCHES - 1}, as above.`,
    unit: "batch",
    measurements: [
      measurement("3 of 5 signatures", steadyMean(gas), 1, AIM),
      measurement("— first batch ever", gas[0] ?? Number.NaN),
      measurement("— second batch (its frontier slot is new)", gas[1] ?? Number.NaN),
      measurement("— eighth batch (completes three subtrees, new slot)", gas[7] ?? Number.NaN),
      measurement("3 of 5 signatures, and the consent of an issuer's key", steadyMean(issued), 1, AIM_WITH_ISSUER),
    ],
  };
}

async function commits(issued: boolean): Promise<number[]> {
  const chain = await openGasChain();
  const gas: number[] = [];
  for (let batch = 0; batch < BATCHES; batch++) gas.push(await commit(chain, batch, issued));
  return gas;
}

function steadyMean(gas: readonly number[]): number {
  const steady = gas.slice(STEADY_FROM);
  return steady.reduce((a, b) => a + b, 0) / steady.length;
}

async function commit(chain: GasChain, batchNumber: number, issued: boolean): Promise<number> {
  const { state, settlement, committee, types, gasOf, consentTo } = chain;
  const assets = [{ chainId: CHAIN_ID, assetType: issued ? types.issued : types.erc721 }];
  const [content, dataHash] = [keccak256(toHex(`content ${batchNumber}`)), keccak256(toHex(`data ${batchNumber}`))];
  const root = batchRoot("validium", manifestRoot(assets), content);
  const history = await state.read.history();
  const message = { history, batchNumber, batchRoot: root, vaultCount: VAULTS, dataHash, epoch: 0n };
  const typedData = validiumBatchTypedData(settlement, message);
  const signatures = await Promise.all(
    committee.members.slice(0, committee.threshold).map(async (member, memberIndex) => ({
      memberIndex,
      ...compactSignature(await member.signTypedData(typedData)),
    })),
  );
  const attestation = encodeAttestation({
    threshold: committee.threshold,
    members: committee.members.map(({ address }) => address),
    signatures,
  });
  const consents = issued ? await consentTo("validium", batchNumber, content) : "0x";
  const place = [history, BigInt(batchNumber)] as const;
  return gasOf(
    state.write.commitValidiumBatch([...place, content, VAULTS, dataHash, packedAssets(assets), attestation, consents]),
  );
}
