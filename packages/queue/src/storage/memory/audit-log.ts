import { chainAct, type AuditAct, type AuditRecord } from '../../core/audit.js';
import type { AuditAsk } from '../task-store.js';

export class AuditLog {
  readonly #records: AuditRecord[] = [];

  add(act: AuditAct): void {
    this.#records.push(chainAct(this.#records.at(-1), act));
  }

  page({ allowed, queue, from, to, beforeSeq, limit }: AuditAsk): AuditRecord[] {
    const asked = this.#records.filter(
      (record) =>
        (queue === undefined || record.queue === queue) &&
        (from === undefined || record.at >= from) &&
        (to === undefined || record.at < to) &&
        (beforeSeq === undefined || record.seq < beforeSeq) &&
        (!allowed || allowed(record.queue)),
    );
    return asked.toReversed().slice(0, limit);
  }
}
