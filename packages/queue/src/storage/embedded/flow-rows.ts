import type { RowReader, RowWriter } from '@millrace/engine';
import type { TaskFlow } from '../../core/flow.js';
import {
  type FlowRow,
  type FlowRowKey,
  type FlowRowKind,
  flowRowKinds,
  type FlowRowQuery,
} from '../port/flow-store.js';
import { after, idKey, idLength, kinds } from './keys.js';

/** Part of the key: never change the number of a kind. */
const numbers = new Map(flowRowKinds.map((kind, index) => [kind, index + 1]));

export function readFlowRows(
  rows: RowReader,
  { kinds: wanted, ids, keys }: FlowRowQuery,
): FlowRow[] {
  if (keys) {
    return ids.flatMap((id) =>
      wanted.flatMap((kind) => keys.flatMap((key) => readRow(rows, { id, kind, key }) ?? [])),
    );
  }
  const spans = neighbours(wanted);
  return ids.flatMap((id) =>
    spans.flatMap(([first, last]) => {
      const start = prefixOf(id, first);
      const end = after(first === last ? start : prefixOf(id, last));
      return Array.from(rows.range({ start, end }), ({ key, value }) => ({
        id,
        kind: flowRowKinds[key[1 + idLength]! - 1]!,
        key: key.toString('utf8', start.length),
        value: value.toString(),
      }));
    }),
  );
}

/** The first and the last of kinds that are stored side by side: one range reads them. */
function neighbours(wanted: readonly FlowRowKind[]): [FlowRowKind, FlowRowKind][] {
  const spans: [FlowRowKind, FlowRowKind][] = [];
  for (const kind of wanted) {
    const span = spans.at(-1);
    if (span && flowRowKinds[numbers.get(span[1])!] === kind) span[1] = kind;
    else spans.push([kind, kind]);
  }
  return spans;
}

export function readRow(rows: RowReader, row: FlowRowKey): FlowRow | undefined {
  const value = rows.get(keyOf(row));
  return value && { ...row, value: value.toString() };
}

export function writeFlowRows(
  rows: RowWriter,
  { puts, removals }: { puts: readonly FlowRow[]; removals: readonly FlowRowKey[] },
): void {
  for (const row of removals) rows.remove(keyOf(row));
  for (const row of puts) rows.put(keyOf(row), Buffer.from(row.value));
}

/** Everything of a deleted task. */
export function removeFlowRows(rows: RowWriter, id: string, { flowId }: TaskFlow): void {
  const start = idKey(kinds.flow, id);
  const keys = Array.from(rows.range({ start, end: after(start) }), ({ key }) => key);
  for (const key of keys) rows.remove(key);
  if (flowId !== undefined) rows.remove(keyOf({ id: flowId, kind: 'member', key: id }));
}

/** All rows of a task, for a transfer. */
export function allFlowRows(rows: RowReader, id: string, { flowId }: TaskFlow): FlowRow[] {
  const own = readFlowRows(rows, { kinds: flowRowKinds, ids: [id] });
  const member = flowId && readRow(rows, { id: flowId, kind: 'member', key: id });
  return member ? [...own, member] : own;
}

function prefixOf(id: string, kind: FlowRowKind): Buffer {
  const key = Buffer.allocUnsafe(2 + idLength);
  key[0] = kinds.flow;
  key.write(id, 1, 'latin1');
  key[1 + idLength] = numbers.get(kind)!;
  return key;
}

function keyOf({ id, kind, key }: FlowRowKey): Buffer {
  return Buffer.concat([prefixOf(id, kind), Buffer.from(key)]);
}
