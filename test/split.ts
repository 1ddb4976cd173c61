/**
 * `npm test` leaves these out, since they take long. It runs one test of pages and one of
 * processes.
 */
const LONG = {
  "pages in a browser": ["test/browser/!(claim).test.ts"],
  "several processes": [
    "test/e2e/!(sandbox).test.ts",
    "test/cli/{interrupted,program,running}.test.ts",
    "test/server/process.test.ts",
  ],
  "clusters on PostgreSQL": ["test/cluster/**/*.test.ts"],
  "long ways to L1": [
    "test/client/withdraw.test.ts",
    "test/mirror/settling.test.ts",
    "test/settlement/{blob-refusals,deploy,issuer,left-out,loops,node-pool,renewals,void-slots}.test.ts",
  ],
  "the contracts' vectors, limits and gas": [
    "test/contracts/{commit-gas,mirror,rollup-commits,trade-attacks,transfers,vectors-*}.test.ts",
  ],
  "large batches, and strangers' values": [
    "test/core/engine/blobs.test.ts",
    "test/server/{hostile,repeats,strictness}.test.ts",
  ],
  "locked and damaged folders": ["test/core/engine/{lock-file,store}.test.ts"],
  "the package, the examples and what 1.0 wrote": ["test/{package,examples,golden}.test.ts"],
};
const rest = Object.values(LONG).flat();

/** `npm run test:heavy` runs these: CI would take longer than 15 minutes with them. */
export const HEAVY = [
  "test/heavy/**/*.test.ts",
  "test/archive/blobs.test.ts",
  "test/contracts/{blobs,changed-calls,compiled,hostile-operator}.test.ts",
  "test/browser/{console,explorer,guide,owner,tokens}.test.ts",
  "test/cluster/upgrade.test.ts",
  "test/core/engine/{damaged-folder,full-disk}.test.ts",
  "test/e2e/{issuer,members,mirror,operations,signer,start-up,up}.test.ts",
  "test/kzg/*.test.ts",
  "test/server/cost.test.ts",
  "test/settlement/{blobs,blob-sending,campaign,hostile-batches,hostile-tokens,in-flight,preflight}.test.ts",
];

/** The tests of `npm test`. */
export const QUICK = {
  name: "quick",
  include: ["test/**/*.test.ts"],
  exclude: [...HEAVY, ...rest],
};

/** `npm run test:all` adds these. */
export const REST = { name: "rest", include: rest, exclude: HEAVY };

/** Says what a run of these projects left out. Empty for the heavy tests, which are no project. */
export function leftOut(projects: readonly string[]): string {
  if (!projects.includes(QUICK.name) && !projects.includes(REST.name)) return "";
  const left = [
    ...(projects.includes(QUICK.name) ? [] : ["what `npm test` runs"]),
    ...(projects.includes(REST.name) ? [] : [`${Object.keys(LONG).join(", ")} (npm run test:all)`]),
    "a fresh compilation, long fuzzing, kills, faults and attacks, the longest pages and processes (npm run test:heavy)",
  ];
  return `Left out: ${left.join("; ")}\n`;
}
