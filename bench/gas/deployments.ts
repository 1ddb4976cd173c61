import { type Address, size } from "viem";
import { type ContractName, readArtifact } from "../../core/l1/artifact.ts";
import { account, openGasChain, owners } from "./chain.ts";
import { measurement, type Section } from "./report.ts";

/** EIP-170. */
const CODE_LIMIT = 24_576;
const COMMITTEE = 5;

export async function deploymentSection(): Promise<Section> {
  const { client, state, transfersCode, tokens, viem } = await openGasChain();
  const admin = account("administrator").address;
  const mirror = await viem.deployContract("StateMirror", [
    {
      admin,
      sourceChainId: 1n,
      sourceContract: state.address,
      committee: owners(COMMITTEE, "member").toSorted(),
      threshold: 3,
      changeDelay: 604_800n,
      maturity: 86_400n,
    },
  ]);
  const lock = await viem.deployContract("AdminTimeLock", [604_800n, [admin], [admin]]);
  const blocks = new Map<string, number>();
  for (let number = 1n; number <= (await client.getBlockNumber()); number++) {
    const block = await client.getBlock({ blockNumber: number });
    for (const hash of block.transactions) {
      const { contractAddress, gasUsed } = await client.getTransactionReceipt({ hash });
      if (contractAddress) blocks.set(contractAddress.toLowerCase(), Number(gasUsed));
    }
  }
  const deployed: readonly (readonly [ContractName, Address])[] = [
    ["StateCommitment", state.address],
    ["Transfers", transfersCode],
    ["StateMirror", mirror.address],
    ["AdminTimeLock", lock.address],
    ["MintableERC20", tokens.erc20.address],
    ["MintableERC721", tokens.erc721.address],
    ["MintableERC1155", tokens.erc1155.address],
  ];
  const measurements = deployed.map(([name, address]) => {
    const gas = blocks.get(address.toLowerCase());
    if (gas === undefined) throw new Error(`found no deployment of ${name}`);
    const bytes = size(readArtifact(name).deployedBytecode).toLocaleString("en");
    return measurement(`${name}, ${bytes} bytes of code`, gas);
  });
  return {
    title: "Deployment",
    method: `Each is deployed once for a settlement contract, mirror, time lock or token. The limit of a contract's code is ${CODE_LIMIT.toLocaleString("en")}
bytes.`,
    unit: "deployment",
    measurements: [
      ...measurements,
      measurement("Registering an asset", tokens.erc721.gas),
      measurement("Registering an asset with an issuer", tokens.issued.gas),
    ],
  };
}
