import type { CollectionInfo } from '../../core/catalog.js';
import type { Commit } from '../../format/changes.js';
import type { Core } from '../../core/core.js';
import type { RecordImage } from '../../format/record.js';
import { prefixKey } from '../../format/keys.js';
import type { BackupScope, BackupWriter } from './writer.js';
import { encodeFrame, frameKinds, jsonFrame } from './frames.js';
import { hashToHex, type BackupCatalog } from './parts.js';
import { encodeRow } from './row-frames.js';
import { encodeCommitRow, encodeRecordRow, toPortable } from './portable.js';

const frameBytes = 64 * 1024;

/** The format that can be restored: frames of records, or of commits for an increment. */
export function snapshotWriter(core: Core): BackupWriter {
  let kind: number = frameKinds.records;
  let rows: Buffer[] = [];
  let bytes = 0;

  const flush = (): Buffer | undefined => {
    if (bytes === 0) return undefined;
    const frame = encodeFrame(kind, Buffer.concat(rows));
    rows = [];
    bytes = 0;
    return frame;
  };
  const add = (row: Buffer): Buffer | undefined => {
    rows.push(row);
    bytes += row.length;
    return bytes >= frameBytes ? flush() : undefined;
  };

  return {
    begin: (scope) => jsonFrame(frameKinds.catalog, catalogOf(scope)),
    record(collection: CollectionInfo, image: RecordImage) {
      kind = frameKinds.records;
      // A frame has one collection: `flush` is called between two.
      if (bytes === 0) rows = [prefixKey(collection.id)];
      return add(encodeRecordRow(image.id, toPortable(image, collection)));
    },
    commit(commit: Commit) {
      kind = frameKinds.commits;
      const changes = commit.changes.map(({ op, collection, id, after }) => ({
        op,
        collection,
        id,
        record: after && toPortable(after, core.catalog.byId(collection)),
      }));
      return add(encodeCommitRow(commit, changes));
    },
    row(row) {
      kind = frameKinds.rows;
      return add(encodeRow(row));
    },
    flush,
  };
}

function catalogOf({ collections, only, sinceChain }: BackupScope): BackupCatalog {
  return {
    collections: collections.map(({ id, name }) => ({ number: id, name })),
    indexes: collections.flatMap(({ name, indexes }) =>
      indexes.map(({ definition }) => ({
        collection: name,
        fields: [...definition.fields],
        unique: Boolean(definition.unique),
        sparse: Boolean(definition.sparse),
      })),
    ),
    only: only ? [...only].sort() : null,
    since_chain: sinceChain ? hashToHex(sinceChain) : null,
  };
}
