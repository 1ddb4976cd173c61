// The same with ten thousand changes of each call.
process.env.MINTMARK_CHANGED_CALLS ??= "10000";
await import("../contracts/changed-calls.test.ts");
