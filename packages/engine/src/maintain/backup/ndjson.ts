import type { CollectionInfo } from '../../core/catalog.js';
import type { Core } from '../../core/core.js';
import type { RecordImage } from '../../format/record.js';
import { checkedJson } from './portable.js';
import type { BackupWriter } from './writer.js';

const pieceBytes = 64 * 1024;

/** The format for people and other programs: a JSON object for each record, or each change. */
export function ndjsonWriter(core: Core): BackupWriter {
  let lines: string[] = [];
  let length = 0;

  const flush = (): Buffer | undefined => {
    if (length === 0) return undefined;
    const piece = Buffer.from(lines.join(''));
    lines = [];
    length = 0;
    return piece;
  };
  const add = (text: string): void => {
    lines.push(text, '\n');
    length += text.length + 1;
  };
  const full = () => (length >= pieceBytes ? flush() : undefined);

  return {
    begin: () => undefined,
    record(collection, image) {
      add(`{"collection":"${collection.name}",${membersOf(image, collection)}}`);
      return full();
    },
    commit({ seq, at, changes }) {
      for (const { op, collection: number, id, after, before } of changes) {
        const collection = core.catalog.byId(number);
        if (collection === core.catalog.system) continue;
        const about = `"op":"${op}","collection":"${collection.name}","committed_at":${timeOf(at)}`;
        const members = after
          ? membersOf(after, collection)
          : headOf({ id, key: before?.key ?? '', rev: before?.rev ?? 0, seq });
        add(`{${about},"record":{${members}}}`);
      }
      return full();
    },
    row: () => undefined,
    flush,
  };
}

/** The members of the record as the REST bridge shows it, built around its JSON. */
function membersOf(image: RecordImage, collection: CollectionInfo): string {
  const json = checkedJson(image, collection);
  const times = `"created_at":${timeOf(image.createdAt)},"updated_at":${timeOf(image.updatedAt)}`;
  const expiry = image.expiresAt ? `,"expires_at":${timeOf(image.expiresAt)}` : '';
  return `${headOf(image)},${times}${expiry},"data":${json}`;
}

function headOf({ id, key, rev, seq }: Pick<RecordImage, 'id' | 'key' | 'rev' | 'seq'>): string {
  return `"id":"${id}","key":${JSON.stringify(key)},"rev":${rev},"seq":${seq}`;
}

function timeOf(ms: number): string {
  return `"${new Date(ms).toISOString()}"`;
}
