import hre from "hardhat";
import { afterAll } from "vitest";
import { RUNNER } from "./run.ts";

// Vitest setup file: each worker records its hits at the end of each of its files.
afterAll(() => hre.hooks.runHandlerChain("test", "onTestWorkerDone", [RUNNER], async () => {}));
