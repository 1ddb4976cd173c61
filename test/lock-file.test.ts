import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const lock: unknown = JSON.parse(
  readFileSync(new URL("../package-lock.json", import.meta.url), "utf8"),
);
interface Entry {
  readonly integrity?: string;
  readonly link?: boolean;
  readonly optional?: boolean;
  readonly engines?: { readonly node?: string };
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
const packages = Object.entries((lock as { packages: Record<string, Entry> }).packages);

test("the lock file names no registry, so any mirror serves it", () => {
  expect(JSON.stringify(lock)).not.toMatch(/"resolved":"https?:/);
});

/**
 * Variants for other machines whose hashes nobody has entered yet. Remove a name here when its hash
 * is in the file.
 */
const UNHASHED = [
  "@crate-crypto/node-eth-kzg-darwin-arm64",
  "@crate-crypto/node-eth-kzg-darwin-x64",
  "@crate-crypto/node-eth-kzg-linux-arm64-gnu",
  "@crate-crypto/node-eth-kzg-win32-arm64-msvc",
  "@crate-crypto/node-eth-kzg-win32-x64-msvc",
  "@foundry-rs/anvil-darwin-amd64",
  "@foundry-rs/anvil-darwin-arm64",
  "@foundry-rs/anvil-linux-arm64",
  "@foundry-rs/anvil-win32-amd64",
  "@rollup/rollup-android-arm-eabi",
  "@rollup/rollup-android-arm64",
  "@rollup/rollup-android-x64",
  "@rollup/rollup-darwin-arm64",
  "@rollup/rollup-darwin-x64",
  "@rollup/rollup-freebsd-arm64",
  "@rollup/rollup-freebsd-x64",
  "@rollup/rollup-linux-arm-gnueabihf",
  "@rollup/rollup-linux-arm-musleabihf",
  "@rollup/rollup-linux-arm64-musl",
  "@rollup/rollup-linux-loong64-gnu",
  "@rollup/rollup-linux-loong64-musl",
  "@rollup/rollup-linux-ppc64-gnu",
  "@rollup/rollup-linux-ppc64-musl",
  "@rollup/rollup-linux-riscv64-gnu",
  "@rollup/rollup-linux-riscv64-musl",
  "@rollup/rollup-linux-s390x-gnu",
  "@rollup/rollup-linux-x64-musl",
  "@rollup/rollup-openbsd-x64",
  "@rollup/rollup-openharmony-arm64",
  "@rollup/rollup-win32-arm64-msvc",
  "@rollup/rollup-win32-ia32-msvc",
  "@rollup/rollup-win32-x64-gnu",
  "@rollup/rollup-win32-x64-msvc",
];

test("every locked package that a Linux machine installs carries an integrity hash", () => {
  const unhashed = packages.filter(
    ([path, entry]) => path !== "" && entry.link !== true && entry.integrity === undefined,
  );
  expect(packages.length).toBeGreaterThan(100);
  expect(unhashed.map(([path]) => path.replace("node_modules/", ""))).toEqual(UNHASHED);
});

test("no locked package warns on Node 20, from where `npm ci` must work: our programs run on a Node of their own", () => {
  // `npm install` brings the field back: take `engines.node` of what this test names out of
  // package-lock.json again.
  const admits20 = (range: string) =>
    range.split("||").some((part) => {
      const [, sign = "", major = "0"] = /^\s*(>=?|\^|~)?\s*v?(\d+)/.exec(part) ?? [];
      return sign.startsWith(">")
        ? Number(major) <= 20
        : Number(major) === 20 || part.trim() === "*";
    });
  const needed = packages.filter(([path, { optional }]) => path !== "" && optional !== true);
  const wanted = needed.flatMap(([path, { engines }]) =>
    engines?.node ? [[path, engines.node] as const] : [],
  );
  expect(wanted.length).toBeGreaterThan(50);
  expect(wanted.filter(([, range]) => !admits20(range))).toEqual([]);
});

test("every platform's variant of a locked package is locked, without which `npm ci` refuses the file", () => {
  const locked = new Set(packages.map(([path]) => path.replace(/^.*node_modules\//, "")));
  const optional = packages.flatMap(([, entry]) => Object.keys(entry.optionalDependencies ?? {}));
  expect(optional.length).toBeGreaterThan(10);
  expect(optional.filter((name) => !locked.has(name))).toEqual([]);
});
