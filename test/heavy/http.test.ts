// A long run: each route of the document answers well at least once.
process.env.MINTMARK_FUZZ_REQUESTS ??= "50000";
await import("../server/hostile.test.ts");
