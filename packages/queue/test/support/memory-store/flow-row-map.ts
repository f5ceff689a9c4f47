import type { TaskFlow } from '../../../src/core/flow.js';
import type { FlowRow, FlowRowKey, FlowRowQuery } from '../../../src/storage/port/flow-store.js';
import { compareText } from './claim-order.js';

/** Steps, signals and links of tasks. */
export class FlowRowMap {
  readonly #rows = new Map<string, FlowRow>();

  read({ kinds, ids, keys }: FlowRowQuery): FlowRow[] {
    return [...this.#rows.values()]
      .filter((row) => kinds.includes(row.kind) && ids.includes(row.id))
      .filter(({ key }) => !keys || keys.includes(key))
      .toSorted((a, b) => compareText(a.id, b.id) || compareText(a.key, b.key));
  }

  write({ puts, removals }: { puts: readonly FlowRow[]; removals: readonly FlowRowKey[] }): void {
    for (const row of removals) this.#rows.delete(nameOf(row));
    for (const row of puts) this.#rows.set(nameOf(row), row);
  }

  deleteOf(id: string, { flowId }: TaskFlow): void {
    for (const [name, row] of this.#rows) {
      const isMember = row.id === flowId && row.kind === 'member' && row.key === id;
      if (row.id === id || isMember) this.#rows.delete(name);
    }
  }
}

function nameOf({ id, kind, key }: FlowRowKey): string {
  return JSON.stringify([id, kind, key]);
}
