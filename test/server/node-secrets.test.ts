import { expect, test } from "vitest";
import { swept } from "../../server/http/log.ts";
import { nodeSecrets, secretParts } from "../../server/process/settings/node-secrets.ts";

const ADDRESS = "0x00000000000000000000000000000000000000aa";

test("all parts of a node's address are secret but its host, and but words of a few letters", () => {
  const url = "https://somebody:password@node.example.com/v3/0123456789abcdef?apikey=fedcba98";
  expect(secretParts(url)).toEqual(["somebody", "password", "0123456789abcdef", "fedcba98"]);
  expect(secretParts("http://127.0.0.1:8545/")).toEqual([]);
  expect(secretParts(undefined)).toEqual([]);
});

test("a line holds no key to any node or service that the settings name", () => {
  const of = (name: string) => `https://${name}.example/v3/key-of-${name}`;
  const secrets = nodeSecrets({
    MINTMARK_RPC_URL: of("home"),
    MINTMARK_MIRROR_RPC_URL: of("mirror"),
    MINTMARK_MIRRORS: [
      { rpcUrl: of("second"), members: [{ address: ADDRESS, url: of("attester") }] },
      { rpcUrl: of("third") },
    ],
    MINTMARK_BEACONS: [of("beacon")],
    MINTMARK_PEERS: [of("peer")],
    MINTMARK_MEMBERS: [{ url: of("member") }],
    MINTMARK_ISSUERS: [{ url: of("issuer") }],
  });
  const nodes = ["home", "mirror", "second", "third", "beacon", "peer"];
  for (const name of [...nodes, "attester", "member", "issuer"])
    expect(swept(`URL: ${of(name)}`, secrets)).toBe(`URL: https://${name}.example/v3/[redacted]`);
});
