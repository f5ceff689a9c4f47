import type { Flags } from '../base/tools.js';
import { UsageError } from '@millrace/kit/errors';
import type { JsonObject, WatchChange, WatchMessage } from '@millrace/db';
import { programName } from '../base/command-name.js';
import { filterOf, listOf, wholeNumber } from '../base/arguments.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import type { Outlet } from '../base/terminal.js';
import { cut, printable, widthOf } from '../render/text.js';
import { watchJson } from './shapes.js';

type WatchFlags = ConnectionFlags &
  Flags<'filter resume startSeq fields max', 'database initial before'>;

export async function watchRecords(
  collection: string | undefined,
  conditions: readonly string[],
  flags: WatchFlags,
  { connected, terminal, lifecycle }: ConnectedTools,
): Promise<void> {
  const rest = {
    filter: filterOf(conditions, flags.filter),
    fields: listOf(flags.fields),
    includeInitial: flags.initial ?? false,
    includeBefore: flags.before ?? false,
    resumeToken: flags.resume,
    startSeq: wholeNumber(flags.startSeq, '--start-seq'),
  };
  const max = wholeNumber(flags.max, '--max') ?? Infinity;
  const database = await connected();
  if ((collection === undefined) === !flags.database) {
    throw new UsageError('Name a collection to watch, or --database for all of them.');
  }
  const { out, err, json } = terminal;
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
