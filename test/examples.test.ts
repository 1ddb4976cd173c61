import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { blobsIn, readBlobBatchData } from "../core/protocol/blob-batch.ts";
import { unpackVaultId } from "../core/protocol/vault.ts";
import { versionedHash } from "../core/protocol/versioned-hash.ts";
import { until } from "../scripts/demo/until.ts";
import { USERS } from "../scripts/sandbox/accounts.ts";
import { startChain } from "../scripts/sandbox/chain.ts";
import { type Sandbox, startSandbox } from "../scripts/sandbox/sandbox.ts";
import { answer, createClient, mint, withdraw } from "../server/client/index.ts";
import { expectPrinted, programs, type Step, shell, stepsOf } from "./guide.ts";

const MODE = "zk-rollup" as const;
const ROOT = fileURLToPath(new URL("../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const [ALICE, BOB, CAROL] = USERS;
/** The comment that opens an example. */
const HEAD = /^\/\*\*[\s\S]*?\*\/\n+/;

describe("the examples, run as their reader runs them", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "mintmark-examples-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Standard output of an example that succeeds. */
  async function output(
    name: string,
    args: readonly string[] = [],
    env: Record<string, string> = {},
    cwd = folder,
  ) {
    const file = join(ROOT, "examples", name);
    const options = { cwd, env: { PATH: process.env.PATH, ...env } };
    return (await promisify(execFile)(process.execPath, [file, ...args], options)).stdout;
  }

  test("embed.ts is the README's code, and proves its vault", async () => {
    expect(read("README.md")).toContain(read("examples/embed.ts").replace(HEAD, "```ts\n"));
    expect(await output("embed.ts")).toMatch(
      /^vault 9223372036854775808 of zk-rollup-0 has root 0x[0-9a-f]{64}\n$/,
    );
  });

  test("embed-and-settle.ts is the guide's code, and settles on a chain as the guide says", async () => {
    const blocks = [...read("docs/guides/embed.md").matchAll(/^```ts\n([\s\S]*?)^```$/gm)];
    expect(blocks.map(([, code]) => code).join("\n")).toBe(
      read("examples/embed-and-settle.ts").replace(HEAD, ""),
    );
    const [installing, starting, deploying, running, ...more] = stepsOf("embed");
    if (deploying === undefined || running === undefined)
      throw new Error("the guide lost commands");
    expect(installing?.commands).toContain("npm install mintmark hardhat viem");
    expect(starting?.commands).toBe("npx mintmark chain\n");
    expect(more).toEqual([]);
    const own = mkdtempSync(join(folder, "settled-"));
    const chain = await startChain("local", 0);
    try {
      const commands = `${deploying.commands.trimEnd()} --json`.replaceAll(
        "http://127.0.0.1:8545",
        chain.rpcUrl,
      );
      const deployed = await shell(commands, own, { PATH: programs(own) });
      const { settlement, tokens } = JSON.parse(deployed) as Record<string, never> & {
        settlement: { address: string };
        tokens: { address: string }[];
      };
      const env = {
        RPC_URL: chain.rpcUrl,
        CONTRACT: settlement.address,
        TOKEN: `${tokens[0]?.address}`,
      };
      expectPrinted(await output("embed-and-settle.ts", [], env, own), running);
    } finally {
      await chain.stop();
    }
  });

  test.each(["loyalty", "tickets"])(
    "the guide %s prints what it says, line by line",
    async (guide) => {
      const steps = stepsOf(guide);
      expect(steps.length).toBeGreaterThan(0);
      // The programs write their stores where they run.
      const clone = join(folder, guide);
      mkdirSync(clone);
      for (const name of ["package.json", "scripts", "examples"])
        symlinkSync(join(ROOT, name), join(clone, name));
      for (const step of steps) {
        expect(step.printed).not.toBeNull();
        expectPrinted(await shell(step.commands, clone), step);
      }
    },
  );

  test("background.ts mints a drop and delivers its event, without the server", async () => {
    const uuid = "[0-9a-f-]{36}";
    // Its store is another than that of embed.ts.
    const own = mkdtempSync(join(folder, "background-"));
    expect(await output("background.ts", [], {}, own)).toMatch(
      new RegExp(`^a drop of 1 row is minted; the webhook got event evt_${uuid}_\\d+\\n$`),
    );
  });

  test("receipt.ts takes the true receipt and no other", async () => {
    const lines = (await output("receipt.ts")).split("\n");
    expect(lines).toEqual([
      "the operator signed for 5 of vault 9223372036854775808:",
      "  receipt as it was given: true",
      "  with another amount:     false",
      "",
    ]);
  });

  describe("against the sandbox", () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      const options = {
        folder: join(folder, "sandbox"),
        port: 0,
        chainPort: 0,
        rollupData: "blobs",
      } as const;
      sandbox = await startSandbox(options);
    });
    afterAll(() => sandbox.stop());

    const sword = () =>
      sandbox.description.assets.find(({ standard }) => standard === "erc721")?.assetId ?? "";

    /** Mints swords for Alice, and answers their vaults. */
    async function armed(...tokenIds: number[]): Promise<string[]> {
      const { api, apiKey } = sandbox.description;
      const mints = tokenIds.map((id) => {
        return { assetId: sword(), tokenId: `${id}`, amount: 1, dataAvailabilityMode: MODE };
      });
      const minted = await mint(createClient({ baseUrl: api, apiKey }), {
        users: [{ userId: ALICE.userId, mints }],
      });
      return minted.vaults.map(({ vaultId }) => vaultId);
    }

    /**
     * A reader's shell prints this after commands with the reader's own values, of which a guide
     * leaves out `…`.
     */
    async function pasted(commands: string, values: Record<string, string>): Promise<string> {
      const own = commands.replaceAll(/\b([A-Z_]+)=\S+/g, (all, name) =>
        name in values ? `${name}=${values[name]}` : all,
      );
      expect(own).not.toContain("…");
      const cwd = join(folder, "reader");
      mkdirSync(cwd, { recursive: true });
      return await shell(own, cwd, { PATH: programs(folder) });
    }

    /** Writes a batch's blobs where the examples read them. */
    async function keepBlobs(batchNumber: number): Promise<void> {
      const { batches, proofs } = sandbox.engine;
      const blobs = blobsIn(readBlobBatchData((await batches.getSealed(MODE, batchNumber)).data));
      for (const [i, { commitment }] of (await proofs.blobs(MODE, batchNumber)).entries()) {
        writeFileSync(join(folder, `${versionedHash(commitment)}.blob`), blobs[i] as Uint8Array);
      }
    }

    test("the guide transfers gives, takes back and redeems swords, and lets a game give them", async () => {
      const { api, apiKey, rpcUrl } = sandbox.description;
      // test/e2e/sandbox.test.ts and test/cli/running.test.ts run the renewals.
      const [settings, give, cancel, redeem, makeKey, session, enter, renew, ...more] =
        stepsOf("transfers");
      if (!settings || !give || !cancel || !redeem || !makeKey || !session || !enter || !renew)
        throw new Error("the guide has lost commands");
      expect(more).toEqual([]);
      // The guide has the sandbox's own key, token and owner, but for its ports.
      for (const own of [`MINTMARK_API_KEY=${apiKey}\n`, `ASSET=${sword()}\n`])
        expect(settings.commands).toContain(own);
      expect(session.commands).toContain(`OWNER=${ALICE.owner.address.toLowerCase()} `);
      const [gift = "", regret = "", ticket = "", lent = "", left = ""] = await armed(
        30_000,
        30_001,
        30_002,
        30_003,
        30_004,
      );
      const paste = (step: Step, values: Record<string, string>, more = "") => {
        const own = { MINTMARK_URL: api, MINTMARK_RPC_URL: rpcUrl, ...values };
        return pasted(`${settings.commands}${step.commands}${more}`, own);
      };
      const SESSION = /0x[0-9a-f]{40}/.exec(await paste(makeKey, {}))?.[0] ?? "";
      const ended = await Promise.all([
        paste(give, { VAULT: gift }),
        paste(redeem, { VAULT: ticket }),
        paste(session, { SESSION, VAULT: lent }),
      ]);
      const client = createClient({ baseUrl: api, apiKey });
      await withdraw(client, { vaultIds: [left], signer: ALICE.owner, wait: true });
      const back = await paste(enter, { TOKEN_ID: "30004" });
      const vaultId = /vaultId\s+(\d+)/.exec(back)?.[1];
      const deposits = async () =>
        (await answer(client.GET("/api/v1/deposits"))).data.map((each) => each.vaultId);
      await expect.poll(deposits).toContain(vaultId);
      for (const text of ended) expect(text).toMatch(/status\s+finalized/);
      expect(ended[2]).toMatch(/status\s+revoked/);
      const sent = await paste(
        { ...give, commands: give.commands.replace(" --wait", "") },
        { VAULT: regret },
      );
      const DIGEST = /digest\s+(0x[0-9a-f]{64})/.exec(sent)?.[1] ?? "";
      // The sandbox commits within seconds, and a slow reader may come too late.
      const cancelled = await paste(cancel, { DIGEST }).catch(String);
      expect(cancelled).toMatch(
        /txHash\s+0x[0-9a-f]{64}|L1 has it, so it can no longer be cancelled/,
      );
    });

    test("the guide trade runs from top to bottom, and again", async () => {
      const { api, apiKey, applicationId, rpcUrl } = sandbox.description;
      const steps = stepsOf("trade");
      const commands = steps.map((step) => step.commands).join("");
      // The guide has the sandbox's own key, token and owners, but for its port.
      for (const own of [`MINTMARK_API_KEY=${apiKey}\n`, `SWORDS=${sword()} `])
        expect(commands).toContain(own);
      const points = async (userId: string) => {
        const balances = await Array.fromAsync(
          sandbox.engine.vaults.balances(applicationId, userId),
        );
        return balances.find(({ tokenId }) => tokenId === null)?.available ?? 0n;
      };
      const before = [await points(ALICE.userId), await points(BOB.userId)];
      for (const runs of [1n, 2n]) {
        const own = commands.replaceAll("http://127.0.0.1:8545", rpcUrl);
        const said = await pasted(own, { MINTMARK_URL: api });
        expect(said).toMatch(/open .* 1 {2}SWRD .* 250 {2}PTS/);
        expect(said).toMatch(/status +settled\n/);
        expect(said).toMatch(/status +cancelled\n/);
        expect(said).toMatch(/txHash +0x[0-9a-f]{64}\n/);
        const now = [await points(ALICE.userId), await points(BOB.userId)];
        const gained = now.map((units, i) => units - (before[i] ?? 0n));
        expect(gained).toEqual([245n, 150n].map((each) => runs * each * 10n ** 9n));
      }
    });

    test("the guide http mints, repeats, waits and is told, by curl and by Python", async () => {
      const { api, apiKey } = sandbox.description;
      const [settings, mint, repeat, wait, listen, webhook, python, ...more] = stepsOf("http");
      if (!settings || !mint || !repeat || !wait || !listen || !webhook || !python)
        throw new Error("the guide has lost commands");
      expect(more).toEqual([]);
      // The guide has the sandbox's own key and token, but for its port.
      expect(settings.commands).toContain(`MINTMARK_API_KEY=${apiKey}\n`);
      expect(settings.commands).toContain(`ASSET=${sword()}\n`);
      const own = { MINTMARK_URL: api };
      const cwd = join(folder, "http");
      mkdirSync(cwd);
      symlinkSync(join(ROOT, "examples"), join(cwd, "examples"));
      const values = settings.commands.replaceAll(/\b([A-Z_]+)=\S+/g, (all, name: string) =>
        name in own ? `${name}=${own[name as keyof typeof own]}` : all,
      );
      const minted = await shell(values + mint.commands, cwd);
      expect(JSON.parse(minted).vaults).toHaveLength(1);
      expectPrinted(await shell(values + mint.commands + repeat.commands, cwd), repeat);
      expect(JSON.parse(readFileSync(join(cwd, "repeat.json"), "utf8"))).toEqual(
        JSON.parse(minted),
      );
      expect(await shell(values + wait.commands, cwd)).toContain("finalized");
      expect(JSON.parse(await shell(values + webhook.commands, cwd)).secret).toMatch(/^whsec_/);
      expectPrinted(await shell(values + python.commands, cwd), python);
      const order = "export ORDER=order-4713 TOKEN=4713\n";
      expectPrinted(await shell(values + order + python.commands, cwd), python);
      const again = await shell(values + order + python.commands, cwd);
      expect(again).toContain("the webhook says webhook.test\na forged event is refused");
      expect(again).toContain("the mint is finalized");
      await listens(listen, values, cwd, async () => {
        await shell(values + mint.commands.replaceAll("4711", "4714"), cwd);
      });
    });

    /** Runs a guide's listener until the line that it promises, while `happens` does. */
    async function listens(step: Step, values: string, cwd: string, happens: () => Promise<void>) {
      const PATH = programs(folder);
      const child = spawn("bash", ["-euc", `${values}exec ${step.commands}`], {
        cwd,
        env: { PATH },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const ended = once(child, "exit");
      await once(child.stderr, "data");
      await happens();
      const lines = createInterface({ input: child.stdout });
      for await (const line of lines) if (/ {2}mint\.accepted {2}\{"mintId"/.test(line)) break;
      child.kill("SIGINT");
      expect(await ended).toEqual([0, null]);
    }

    test("the guides claim-links and console work beside each other", async () => {
      const { api, apiKey, applicationId, store: MINTMARK_STORE } = sandbox.description;
      const [[links], [invite]] = [stepsOf("claim-links"), stepsOf("console")];
      if (!links || !invite) throw new Error("a guide has lost commands");
      const [, invited] = await Promise.all([
        pasted(links.commands, { MINTMARK_URL: api, MINTMARK_API_KEY: apiKey, ASSET: sword() }),
        pasted(invite.commands, { APPLICATION: applicationId, MINTMARK_STORE }),
      ]);
      expect(readFileSync(join(folder, "reader", "links.csv"), "utf8").match(/#/g)).toHaveLength(
        200,
      );
      expect(readdirSync(join(folder, "reader", "codes"))).toHaveLength(200);
      expect(invited).toMatch(/^link\s+[0-9a-f]{96}$/m);
    });

    test("exit.ts brings an owner's pieces to L1, with the blobs from a peer, or from a folder", async () => {
      const { rpcUrl, contract, applicationId, api, apiKey } = sandbox.description;
      const { batches, vaults } = sandbox.engine;
      const piece = (id: number) => ({
        tokenId: `${id}`,
        assetId: sword(),
        amount: "1",
        dataAvailabilityMode: MODE,
      });
      const headers = { "x-api-key": apiKey, "content-type": "application/json" };
      const owners = [BOB, CAROL];
      const users = owners.map(({ userId }, i) => ({ userId, mints: [piece(20_000 + i)] }));
      const body = JSON.stringify({ users });
      expect((await fetch(`${api}/api/v1/mint`, { method: "POST", headers, body })).status).toBe(
        200,
      );
      const held = async () => {
        const lists = owners.map(({ userId }) => vaults.list(applicationId, { userId }));
        return (await Promise.all(lists)).flatMap(({ data }) =>
          data.filter(({ tokenId }) => tokenId === 20_000n || tokenId === 20_001n),
        );
      };
      const own = await until("the batch on L1", held, (all) =>
        all.every(({ status }) => status === "finalized"),
      );
      const { batchNumber } = unpackVaultId(own[0]?.vaultId ?? 0n);
      expect((await batches.get(MODE, batchNumber)).kind).toBe("blobs");
      await keepBlobs(batchNumber);
      const sources: Record<string, string>[] = [
        { MINTMARK_PEER: api },
        { MINTMARK_BLOBS: folder },
      ];
      const told = await Promise.all(
        sources.map((source, i) => {
          const key = owners[i]?.owner.getHdKey().privateKey ?? new Uint8Array();
          const env = {
            MINTMARK_RPC_URL: rpcUrl,
            MINTMARK_CONTRACT: contract,
            OWNER_KEY: toHex(key),
            ...source,
          };
          return output("exit.ts", [`${own[i]?.vaultId}`], env);
        }),
      );
      for (const [i, text] of told.entries()) {
        const token = `1 of token ${20_000 + i} is on L1 for \\d+ gas; the owner holds 1`;
        expect(text).toMatch(
          new RegExp(`^the kit of vault \\d+ is in exit-kit\\.json\\n${token}\\n$`),
        );
      }
    });

    test("gift.ts gives a sword to a friend, who takes it to L1 without the server", async () => {
      const { api, apiKey, rpcUrl, applicationId } = sandbox.description;
      const { engine } = sandbox;
      const mint = {
        assetId: sword(),
        tokenId: "15001",
        amount: 1,
        dataAvailabilityMode: "zk-rollup",
      };
      const principal = await engine.keys.authenticate(apiKey);
      const { transactions } = await engine.mint(principal, {
        users: [{ userId: BOB.userId, mints: [mint] }],
      } as unknown);
      const { vaultId } = transactions[0] ?? { vaultId: 0n };
      const status = async () => (await engine.vaults.get(applicationId, vaultId)).status;
      await until("the sword is final", status, (found) => found === "finalized");
      const keyOf = (owner: typeof BOB.owner) =>
        toHex(owner.getHdKey().privateKey ?? new Uint8Array());
      const keys = { PLAYER_KEY: keyOf(BOB.owner), FRIEND_KEY: keyOf(ALICE.owner) };
      const env = {
        MINTMARK_URL: api,
        MINTMARK_API_KEY: apiKey,
        MINTMARK_RPC_URL: rpcUrl,
        ...keys,
      };
      await keepBlobs(unpackVaultId(vaultId).batchNumber);
      const blobs = { MINTMARK_BLOBS: folder };
      const [given, left] = (await output("gift.ts", [`${vaultId}`], { ...env, ...blobs })).split(
        "\n",
      );
      expect(given).toMatch(/^the gift is finalized: vault \d+ is the friend's$/);
      expect(left).toBe("sword 15001 is on L1, and the friend holds 1");
    });
  });

  test("every example is run here", () => {
    const tests =
      read("test/examples.test.ts") +
      ["loyalty", "tickets"].map((guide) => stepsOf(guide)[0]?.commands);
    // test/e2e/signer.test.ts runs the service.
    const others = ["shop.ts", "signing-service.ts"];
    const names = readdirSync(join(ROOT, "examples")).filter(
      (name) => name.endsWith(".ts") && !others.includes(name),
    );
    const missing = names.filter(
      (name) =>
        !tests.includes(`output("${name}"`) &&
        !tests.includes(`example -- ${name.replace(".ts", "")}`),
    );
    expect(missing).toEqual([]);
  });
});
