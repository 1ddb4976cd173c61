import { writeFile } from "node:fs/promises";
import { vectorFiles } from "./vectors/index.ts";

// `node test/core/protocol/write-vectors.ts`: writes the shared vectors anew. A file that changes means another protocol version.
for (const [name, text] of await vectorFiles()) {
  await writeFile(new URL(`../../vectors/${name}`, import.meta.url), text);
}
