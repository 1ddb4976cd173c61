import type { Command } from "commander";
import { repeat } from "../../core/backoff.ts";
import { Archive, type VoidedDuplicate, Watcher } from "../../core/guards/archive/index.ts";
import { CommitteeMember } from "../../core/guards/committee/index.ts";
import { Issuer, LocalMintRecord, MintPolicy } from "../../core/guards/issuer/index.ts";
import {
  advanceMirror,
  importBatches,
  MirrorAttester,
  RemoteAttester,
  SourceHistory,
} from "../../core/guards/mirror/index.ts";
import { connectL1, connectMirror, readL1 } from "../../core/l1/index.ts";
import {
  issuerSettings,
  memberSettings,
  relaySettings,
  watchSettings,
} from "../../server/process/settings/process-settings.ts";
import { stopSignal } from "../../server/process/shutdown.ts";
import { processAccount } from "../cli/arguments.ts";
import { configured } from "../cli/command.ts";
import { messageOf } from "../cli/errors.ts";
import { chainOf, openLevel, sourcesOf } from "../cli/l1.ts";
import { fieldsOf, runSigner, watchMirrors } from "../cli/signer.ts";

const say = (line: string) => process.stdout.write(`${line}\n`);

/** The processes of parties other than the operator, each with its own key. */
export function addMembers(program: Command): void {
  configured(
    program,
    "member",
    "a committee member, until SIGINT or SIGTERM; its key pays for voiding (MINTMARK_MEMBER_KEY, or standard input)",
    ["member --member-store ./member --rpc https://rpc.example --contract 0x… < member.key"],
    memberSettings,
    async (settings) => {
      const { account, secrets } = await processAccount("MEMBER");
      const l1 = await connectL1({ ...chainOf(settings), account });
      const store = await openLevel(settings.MINTMARK_MEMBER_STORE);
      const member = await CommitteeMember.open({ account, store, l1 });
      const source = new SourceHistory(l1, settings.MINTMARK_FROM_BLOCK);
      const attester = new MirrorAttester(account, source);
      const { buildMemberServer } = await import("../../server/process/signers/member.ts");
      await runSigner({
        what: "member",
        signer: member,
        l1,
        settings,
        secrets,
        build: (options) => buildMemberServer({ ...options, member, attester }),
        beside: (log, stopped) => {
          const mirrors = {
            archive: member.archive,
            source,
            account,
            mirrors: settings.MINTMARK_MIRRORS,
            intervalMs: settings.MINTMARK_POLL_MS,
            onVoided: (chainId: bigint, voided: VoidedDuplicate) =>
              log.warn({ chainId: `${chainId}`, ...fieldsOf(voided) }, "duplicate voided on a mirror"),
            onError: (chainId: bigint, error: unknown) =>
              log.error({ chainId: `${chainId}`, reason: messageOf(error) }, "watching a mirror failed; trying again"),
          };
          return watchMirrors(mirrors, stopped);
        },
      });
    },
  );
  configured(
    program,
    "issuer",
    "consent to batches with your tokens, until SIGINT or SIGTERM (MINTMARK_ISSUER_KEY, or standard input)",
    [
      "issuer --issuer-store ./issuer --rpc https://rpc.example --contract 0x… --policy policy.json < issuer.key",
      "issuer --config issuer.json   # with MINTMARK_ISSUER_KEY and MINTMARK_RECORD_SECRET in the environment",
    ],
    issuerSettings,
    async (settings) => {
      const { account, secrets } = await processAccount("ISSUER");
      const { MINTMARK_ISSUER: address, MINTMARK_POLICY: policy, MINTMARK_RECORD_SECRET: secret } = settings;
      const l1 = await connectL1({ ...chainOf(settings), account });
      const store = await openLevel(settings.MINTMARK_ISSUER_STORE);
      const local = new LocalMintRecord(store);
      const record = policy === undefined ? local : new MintPolicy(store, policy);
      const issuer = await Issuer.open({ account, store, l1, record, ...(address && { address }) });
      const records = secret === undefined ? {} : { records: { record: local, secret } };
      const { buildIssuerServer } = await import("../../server/process/signers/issuer.ts");
      await runSigner({
        what: "issuer",
        signer: issuer,
        l1,
        settings,
        secrets: [...secrets, ...(secret === undefined ? [] : [secret])],
        build: (options) => buildIssuerServer({ ...options, issuer, ...records }),
        work: (signal) => issuer.settle(signal),
      });
    },
  );
  configured(
    program,
    "watch",
    "void ERC-721 vaults that were minted twice, on L1 and on mirrors, until SIGINT or SIGTERM; the key pays and needs no role (MINTMARK_WATCHER_KEY, or standard input)",
    ["watch --store ./watcher --rpc https://rpc.example --contract 0x… --peers https://member.example < key.txt"],
    watchSettings,
    async (settings) => {
      const { account } = await processAccount("WATCHER");
      const { MINTMARK_FROM_BLOCK: fromBlock, MINTMARK_POLL_MS: intervalMs } = settings;
      const l1 = await connectL1({ ...chainOf(settings), account });
      const archive = await Archive.open({ store: await openLevel(settings.MINTMARK_STORE), l1 });
      const watcher = new Watcher({
        archive,
        l1,
        fromBlock,
        ...sourcesOf(settings),
        intervalMs,
        onVoided: (voided) => say(sentenceOf(voided)),
        onInvalidTransfer: ({ vaultId, outId, fault }) =>
          say(
            `slot ${outId} transfers vault ${vaultId} without effect (${fault}): the committee should not have signed it`,
          ),
        onFault: ({ name }, batchId, error) => say(`${name} did not give ${batchId}: ${messageOf(error)}`),
        onError: (error) => say(`${messageOf(error)}; trying again`),
      });
      const mirrors = {
        archive,
        account,
        source: new SourceHistory(l1, fromBlock),
        mirrors: settings.MINTMARK_MIRRORS,
        intervalMs,
        onVoided: (chainId: bigint, voided: VoidedDuplicate) => say(`chain ${chainId}: ${sentenceOf(voided)}`),
        onError: (chainId: bigint, error: unknown) => say(`chain ${chainId}: ${messageOf(error)}; trying again`),
      };
      const stopping = new AbortController();
      const watching = Promise.all([watcher.run(stopping.signal), watchMirrors(mirrors, stopping.signal)]);
      const watched = [l1.settlement, ...settings.MINTMARK_MIRRORS].map(({ contract }) => contract);
      say(`watching ${watched.join(", ")}; Ctrl-C stops`);
      await stopSignal();
      stopping.abort();
      await watching;
      await archive.close();
    },
  );
  configured(
    program,
    "relay",
    "keep a mirror on another chain up to date, until SIGINT or SIGTERM; the key pays there and needs no role (MINTMARK_RELAY_KEY, or standard input)",
    [
      "relay --mirror-rpc https://rpc.other.example --mirror 0x… --threshold 2 --members 0x…=https://a.example < key.txt",
    ],
    relaySettings,
    async (settings) => {
      const { account } = await processAccount("RELAY");
      const { MINTMARK_MIRROR: at } = settings;
      const l1 = await readL1(chainOf(settings));
      const source = new SourceHistory(l1, settings.MINTMARK_FROM_BLOCK);
      const mirror = await connectMirror({ rpc: settings.MINTMARK_MIRROR_RPC_URL, contract: at, account });
      const committee = {
        members: settings.MINTMARK_MEMBERS.map((member) => new RemoteAttester(member)),
        threshold: settings.MINTMARK_THRESHOLD,
      };
      const progress = { steps: 0 };
      const stopping = new AbortController();
      const round = async (signal: AbortSignal) => {
        await advanceMirror({
          source,
          mirror,
          committee,
          signal,
          onStep: ({ mode, first, count }) => say(`${mode} batches ${first} to ${count - 1} are on the mirror`),
        });
        const imported = await importBatches({ source, mirror }, progress, signal);
        for (const batchId of imported) say(`owners can withdraw from ${batchId}`);
      };
      const onRound = (error: unknown) => {
        if (error !== null) say(`${messageOf(error)}; trying again`);
      };
      const options = { intervalMs: settings.MINTMARK_POLL_MS, backoff: { firstMs: 1_000, maxMs: 60_000 }, onRound };
      const relaying = repeat(round, options, stopping.signal);
      say(`relaying ${l1.settlement.contract} to ${at} on chain ${mirror.settlement.chainId}; Ctrl-C stops`);
      await stopSignal();
      stopping.abort();
      await relaying;
    },
  );
}

function sentenceOf({ earlier, later, txHash }: VoidedDuplicate): string {
  return `voided vault ${later}, a duplicate of ${earlier}, by ${txHash}`;
}
