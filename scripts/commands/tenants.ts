import type { Command } from "commander";
import { SCOPES } from "../../core/index.ts";
import { group, operating, paged } from "../cli/command.ts";

const APPLICATION = ["--application <uuid>", "the application's id"] as const;
const EXAMPLE_ID = "01a1fd1b-bf5c-743a-abf0-3c3fec348cab";

export function addApplications(program: Command): void {
  const applications = group(program, "applications", "tenants: who may mint");
  operating(
    applications,
    "create <name>",
    "create an application",
    ['applications create "My game"', `applications create "My game" --id ${EXAMPLE_ID}`],
    "applications.create",
    ({ id, mode }, [name]) => ({ name, applicationId: id, dataAvailabilityMode: mode }),
  )
    .option("--id <uuid>", "its id; default a fresh one")
    .option("--mode <mode>", "validium or zk-rollup, for mints that name none; default: they must name one");
  operating(
    applications,
    "change <application>",
    "set what mints that name no mode are minted in",
    [`applications change ${EXAMPLE_ID} --mode validium`, `applications change ${EXAMPLE_ID}`],
    "applications.change",
    ({ mode }, [applicationId]) => ({ applicationId, dataAvailabilityMode: mode ?? null }),
  ).option("--mode <mode>", "validium or zk-rollup; default: mints must name one");
  operating(
    applications,
    "list",
    "list applications",
    ["applications list", "applications list --json"],
    "applications.list",
    () => ({}),
  );
  for (const [name, suspended, what] of [
    ["suspend", true, "refuse every request of an application, at once"],
    ["resume", false, "take an application's requests again"],
  ] as const) {
    operating(
      applications,
      `${name} <application>`,
      what,
      [`applications ${name} ${EXAMPLE_ID}`],
      "applications.suspend",
      (_, [applicationId]) => ({ applicationId, suspended }),
    );
  }
}

export function addKeys(program: Command): void {
  const keys = group(program, "keys", "API keys of applications");
  operating(
    keys,
    "issue",
    "issue a key; the answer is the only place where it is ever seen",
    [
      `keys issue --application ${EXAMPLE_ID}`,
      `keys issue --application ${EXAMPLE_ID} --scopes mint,read --quota 100000`,
    ],
    "keys.issue",
    ({ application, scopes, expires, quota }) => ({
      applicationId: application,
      scopes: typeof scopes === "string" ? scopes.split(",") : undefined,
      expiresAt: expires,
      mintQuota: quota,
    }),
  )
    .requiredOption(...APPLICATION)
    .option("--scopes <list>", `of ${SCOPES.join(", ")}, with commas between; default all`)
    .option("--expires <time>", "RFC 3339, such as 2027-01-01T00:00:00Z; default never")
    .option("--quota <mints>", "most mint entries that it may ever make; default no bound");
  operating(
    keys,
    "list",
    "list an application's keys, without their secrets",
    [`keys list --application ${EXAMPLE_ID}`],
    "keys.list",
    ({ application }) => ({ applicationId: application }),
  ).requiredOption(...APPLICATION);
  operating(
    keys,
    "rotate <key>",
    "issue a key with the scopes and the remaining quota of another, which stays valid until you revoke it",
    ["keys rotate 5e5e01a1fd1bbf5c", "keys revoke 5e5e01a1fd1bbf5c"],
    "keys.rotate",
    ({ expires }, [keyId]) => ({ keyId, expiresAt: expires }),
  ).option("--expires <time>", "RFC 3339; default never");
  operating(
    keys,
    "revoke <key>",
    "end a key and its tokens at once",
    ["keys revoke 5e5e01a1fd1bbf5c"],
    "keys.revoke",
    (_, [keyId]) => ({ keyId }),
  );
}

export function addUsers(program: Command): void {
  const users = group(program, "users", "users of applications, each with the L1 address that owns its tokens");
  operating(
    users,
    "create <owner>",
    "register a user by its owner's L1 address",
    [`users create 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 --application ${EXAMPLE_ID}`],
    "users.create",
    ({ application, id, reference }, [ownerAddress]) => ({
      applicationId: application,
      ownerAddress,
      userId: id,
      reference,
    }),
  )
    .requiredOption(...APPLICATION)
    .option("--id <uuid>", "its id; default a fresh one")
    .option("--reference <text>", "the application's own name for it, at most 64 characters");
  paged(
    operating(
      users,
      "list",
      "list users, a page at a time",
      [`users list --application ${EXAMPLE_ID} --limit 100`],
      "users.list",
      ({ application, owner, reference, limit, cursor }) => ({
        applicationId: application,
        ownerAddress: owner,
        reference,
        limit,
        cursor,
      }),
    )
      .requiredOption(...APPLICATION)
      .option("--owner <address>", "those of this owner")
      .option("--reference <text>", "those with this reference"),
  );
  operating(
    users,
    "show <user>",
    "show a user and its first 100 balances",
    [`users show 6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a10 --application ${EXAMPLE_ID}`],
    "users.show",
    ({ application }, [userId]) => ({ applicationId: application, userId }),
  ).requiredOption(...APPLICATION);
}
