import { UsageError } from '@millrace/kit/errors';
import type { Filter, JsonObject, WatchChange, WatchMessage } from '@millrace/db';
import type { RemoteDatabase } from '@millrace/db/client';
import { programName } from '../base/command-name.js';
import type { Tools } from '../base/tools.js';
import type { Outlet } from '../base/terminal.js';
import { cut, printable, widthOf } from '../render/text.js';
import { watchJson } from './shapes.js';

export interface WatchOptions {
  collection: string | undefined;
  /** The whole database. */
  database: boolean;
  filter: Filter | undefined;
  fields: readonly string[];
  includeInitial: boolean;
  includeBefore: boolean;
  resumeToken: string | undefined;
  startSeq: number | undefined;
  max: number | undefined;
}

export async function watchRecords(
  database: RemoteDatabase,
  options: WatchOptions,
  { terminal, lifecycle }: Pick<Tools, 'terminal' | 'lifecycle'>,
): Promise<void> {
  if ((options.collection === undefined) === !options.database) {
    throw new UsageError('Name a collection to watch, or --database for all of them.');
  }
  const { out, err, json } = terminal;
  const { collection, database: _, max = Infinity, ...rest } = options;
  const watchOptions = {
    ...rest,
    signal: lifecycle.interrupted,
    onCut: (reason: Error) =>
      err.write(`${programName()}: ${reason.message} Resuming when it is back.\n`),
  };
  const messages: AsyncIterable<WatchMessage> =
    collection === undefined
      ? database.watch(watchOptions)
      : database.collection<JsonObject>(collection).watch(watchOptions);
  let shown = 0;
  for await (const message of messages) {
    if (json) out.write(`${JSON.stringify(watchJson(message))}\n`);
    else out.write(linesOf(message, out));
    await out.drained();
    shown += message.changes.length;
    if (shown >= max) return;
  }
}

/** Prints one line per change. Bookmarks are only for programs. */
function linesOf(message: WatchMessage, out: Outlet): string {
  if (message.kind === 'initial_end') return '-- up to date; changes follow --\n';
  const when = (message.committedAt?.toISOString() ?? '').slice(11, 19).padEnd(8);
  return message.changes.map((change) => lineOf(change, when, out)).join('');
}

const tones = { insert: 'ok', update: 'warn', delete: 'bad', expire: 'bad' } as const;

function lineOf(change: WatchChange, when: string, out: Outlet): string {
  const { op, collection, record, entered, left } = change;
  const mark = entered ? ' (now matches)' : left ? ' (no longer matches)' : '';
  const name = printable(`${collection}/${record.key || record.id}`);
  const head = `${when}  ${op.padEnd(6)}  ${name}  rev ${record.rev}${mark}`;
  const data = 'data' in record ? `  ${printable(JSON.stringify(record.data))}` : '';
  const room = out.columns - widthOf(head);
  const shown = Number.isFinite(room) ? cut(data, Math.max(room, 0)) : data;
  const before =
    change.before === undefined
      ? ''
      : `\n${' '.repeat(10)}was     ${cut(printable(JSON.stringify(change.before.data)), Math.max(out.columns - 18, 10))}`;
  return `${head.replace(op, out.paint(tones[op], op))}${data === '' || room < 6 ? '' : shown}${before}\n`;
}
