import type { Record } from '@millrace/contract/db';
import type { JsonObject } from '../../engine/documents.js';
import type { Projection } from '../../engine/query/projection.js';
import type { RecordSink } from '../../engine/query/record-sink.js';
import type { RecordImage } from '../../engine/record.js';
import { recordMessage } from './records.js';

/** Writes records as a face sends them, from where they lie and without a message for each. */
export interface RecordWriter {
  /** `parts`: what to show of the document; undefined: all of it. `commit`: the commit to show. */
  add(image: RecordImage, parts: JsonObject | undefined, commit: number): void;
  /** All since the last time, as the face knows it again. */
  take(): object;
}

/** The records of a message: a list of them, or what a face has written in its place. */
export interface FoundRecords {
  readonly records: Record[];
  readonly written?: object;
}

/** How records are shown. */
export interface Showing {
  /** Bodies as JSON bytes in place of structs. */
  readonly json: boolean;
  /** What to show of the documents; undefined: all of them. */
  readonly project: Projection | undefined;
  /** The ids of records that are not committed yet. */
  readonly own: { has(id: string): boolean } | undefined;
}

/** Makes a message of each record. */
export class MessageSink implements RecordSink<FoundRecords> {
  #records: Record[] = [];

  constructor(private readonly showing: Showing) {}

  add(image: RecordImage): void {
    const { json, project, own } = this.showing;
    const kept = image.keep();
    const seq = own?.has(kept.id) ? 0 : undefined;
    this.#records.push(recordMessage(kept, { json, data: project?.(kept.data), seq }));
  }

  take(): FoundRecords {
    const records = this.#records;
    this.#records = [];
    return { records };
  }
}

/** Hands each record to the writer of a face. */
export class WritingSink implements RecordSink<FoundRecords> {
  constructor(
    private readonly writer: RecordWriter,
    private readonly showing: Showing,
  ) {}

  add(image: RecordImage): void {
    const { project, own } = this.showing;
    const commit = own?.has(image.id) ? 0 : image.seq;
    this.writer.add(image, project?.(image.data), commit);
  }

  take(): FoundRecords {
    return { records: [], written: this.writer.take() };
  }
}
