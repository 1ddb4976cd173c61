import hre from "hardhat";
import { afterAll } from "vitest";
import { RUNNER } from "./run.ts";

// Vitest setup file: a worker writes down what has been hit by the end of each of its files.
afterAll(() => hre.hooks.runHandlerChain("test", "onTestWorkerDone", [RUNNER], async () => {}));
