import type { Record } from '@millrace/contract/db';
import type { JsonObject } from '@millrace/engine/value/documents';
import type { Projection } from '@millrace/engine/query/projection';
import type { RecordSink } from '@millrace/engine/query/record-sink';
import type { RecordImage } from '@millrace/engine/format/record';
import { recordMessage } from './records.js';

/** Encodes records directly from their stored bytes, without a message for each. */
export interface RecordWriter {
  /** `parts`: the projected document; undefined: the whole document. `commit`: the seq to show. */
  add(image: RecordImage, parts: JsonObject | undefined, commit: number): void;
  /** Returns everything added since the last call. */
  take(): object;
}

/** The records of a message: as messages, or already encoded. */
export interface FoundRecords {
  readonly records: Record[];
  readonly written?: object;
}

/** How records are presented. */
export interface RecordView {
  /** Bodies as JSON bytes instead of structs. */
  readonly json: boolean;
  /** Projection of the documents; undefined: whole documents. */
  readonly project: Projection | undefined;
  /** Ids of records that the transaction has written and not committed. */
  readonly own: { has(id: string): boolean } | undefined;
}

/** Creates a message for each record. */
export class MessageSink implements RecordSink<FoundRecords> {
  #records: Record[] = [];

  constructor(private readonly view: RecordView) {}

  add(image: RecordImage): void {
    const { json, project, own } = this.view;
    const copy = image.keep();
    const seq = own?.has(copy.id) ? 0 : undefined;
    this.#records.push(recordMessage(copy, { json, data: project?.(copy.data), seq }));
  }

  take(): FoundRecords {
    const records = this.#records;
    this.#records = [];
    return { records };
  }
}

/** Passes each record to a record writer. */
export class WritingSink implements RecordSink<FoundRecords> {
  constructor(
    private readonly writer: RecordWriter,
    private readonly view: RecordView,
  ) {}

  add(image: RecordImage): void {
    const { project, own } = this.view;
    const commit = own?.has(image.id) ? 0 : image.seq;
    this.writer.add(image, project?.(image.data), commit);
  }

  take(): FoundRecords {
    return { records: [], written: this.writer.take() };
  }
}
