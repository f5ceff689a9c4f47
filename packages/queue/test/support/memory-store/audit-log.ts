import { chainAct, type AuditAct, type AuditRecord } from '../../../src/core/audit.js';
import type { AuditQuery } from '../../../src/storage/port/task-store.js';

export class AuditLog {
  readonly #records: AuditRecord[] = [];

  add(act: AuditAct): void {
    this.#records.push(chainAct(this.#records.at(-1), act));
  }

  page({ allowed, queue, from, to, beforeSeq, limit }: AuditQuery): AuditRecord[] {
    const matching = this.#records.filter(
      (record) =>
        (queue === undefined || record.queue === queue) &&
        (from === undefined || record.at >= from) &&
        (to === undefined || record.at < to) &&
        (beforeSeq === undefined || record.seq < beforeSeq) &&
        (!allowed || allowed(record.queue)),
    );
    return matching.toReversed().slice(0, limit);
  }
}
