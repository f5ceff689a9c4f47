import { idLength } from '../../format/keys.js';
import { frameKinds, FrameReader } from './frames.js';
import type { BackupFormat } from './parts.js';

const newline = 0x0a;
/** The collection number at the start of a frame of records. */
const prefixLength = 4;

/** Counts the records in the data of a full backup as it arrives, for progress. */
export class RecordCounter {
  #records = 0;
  readonly #frames = new FrameReader('The data of the backup');

  constructor(private readonly format: BackupFormat) {}

  get records(): number {
    return this.#records;
  }

  push(bytes: Buffer): void {
    if (this.format === 'ndjson') {
      for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) {
        this.#records++;
      }
      return;
    }
    this.#frames.push(bytes);
    for (let frame = this.#frames.next(); frame; frame = this.#frames.next()) {
      if (frame.kind === frameKinds.records) this.#records += rowsIn(frame.payload);
    }
  }
}

function rowsIn(payload: Buffer): number {
  let rows = 0;
  for (let at = prefixLength; at < payload.length; rows++) {
    at += idLength + 4 + payload.readUInt32BE(at + idLength);
  }
  return rows;
}
