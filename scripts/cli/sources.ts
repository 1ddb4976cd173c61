import { BeaconNode, BlobFolder, HttpBatchSource } from "../../core/guards/archive/index.ts";
import type { SourceSettings } from "../../server/process/settings/process-settings.ts";

/** The sources of batch data that the settings name: of blobs, and of whole batches. */
export function sourcesOf({ MINTMARK_BEACONS, MINTMARK_BLOBS: folder, MINTMARK_PEERS }: SourceSettings) {
  return {
    blobs: [
      ...(folder === undefined ? [] : [new BlobFolder(folder)]),
      ...MINTMARK_BEACONS.map((url) => new BeaconNode(url)),
    ],
    sources: MINTMARK_PEERS.map((url) => new HttpBatchSource(url)),
  };
}
