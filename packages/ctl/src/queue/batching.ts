import { Readable } from 'node:stream';
import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { isObject, parseJson, bytesOf } from '../base/arguments.js';
import { linesOf } from '../db/lines.js';
import type { Tools } from '../base/tools.js';
import { renderTable, wrapped, type Sheet } from '../render/table.js';
import type { QueueApi } from './api.js';
import { counted } from '@millrace/contract/lists';
import { rest } from '../base/rest.js';
import { patiently } from './waiting.js';

type ItemResult = QueueSchema<'BatchItemResult'>;

/** A line of the file that is being submitted. */
interface Item {
  line: number;
  task: Record<string, unknown>;
  bytes: number;
}

interface LineResult {
  line: number;
  id: string | null;
  status: number;
  error?: QueueSchema<'BatchItemError'> | { code: string; status: number; title: string };
}

const maxItems = 1_000;
// The server accepts 16 MiB, including commas and brackets.
const maxBytes = 15 * 2 ** 20;
const maxRounds = 30;
const roundRestMs = 1_000;

/** Submits every line of a file, in the largest batches that the server accepts. */
export async function submitFile(
  api: QueueApi,
  { queue, file }: { queue: string; file: string },
  tools: Tools,
): Promise<void> {
  const { terminal, lifecycle } = tools;
  const input = Readable.from(bytesOf(file, terminal), { objectMode: false });
  const results: LineResult[] = [];
  let batch: Item[] = [];
  let bytes = 0;
  const flush = async () => {
    if (batch.length === 0) return;
    results.push(...(await submitItems(api, queue, batch, lifecycle.interrupted)));
    [batch, bytes] = [[], 0];
    if (terminal.err.isScreen) terminal.err.write(`\rsubmitted ${counted(results.length, 'task')}`);
  };
  let line = 0;
  for await (const text of linesOf(input)) {
    line++;
    if (text.trim() === '') continue;
    const item = itemOf(text, line);
    if ('error' in item) {
      results.push(item);
      continue;
    }
    if (batch.length === maxItems || bytes + item.bytes > maxBytes) await flush();
    batch.push(item);
    bytes += item.bytes + 1;
  }
  await flush();
  if (terminal.err.isScreen && results.length > 0) terminal.err.write('\n');
  report(results, queue, tools);
}

/** A line that is not an object is rejected alone, like an invalid task. */
function itemOf(text: string, line: number): Item | Required<LineResult> {
  const refuse = (detail: string) => {
    const error = { code: 'INVALID_TASK', status: 422, title: 'Invalid task', detail };
    return { line, id: null, status: 422, error };
  };
  let task: unknown;
  try {
    task = parseJson(text, 'The line');
  } catch (error) {
    return refuse((error as Error).message);
  }
  if (!isObject(task)) return refuse('A line must be a JSON object such as {"handler_ref":"x"}.');
  // A client-side id makes the batch safe to repeat.
  const whole = 'id' in task ? task : { id: systemRandom.ulid(systemClock.now()), ...task };
  return { line, task: whole, bytes: Buffer.byteLength(JSON.stringify(whole)) };
}

/** Sends one batch; tasks rejected because the server is busy are sent again later. */
async function submitItems(
  api: QueueApi,
  queue: string,
  items: readonly Item[],
  signal: AbortSignal,
): Promise<LineResult[]> {
  const results = new Map<Item, LineResult>();
  let left = items;
  for (let round = 1; left.length > 0; round++) {
    const body = left.map(({ task }) => task);
    const work = () => api.call('submitBatch', { queue, body });
    const { body: answers } = await patiently(work, signal);
    left.forEach((item, at) => results.set(item, resultOf(item, answers[at]!)));
    left = left.filter((item) => results.get(item)!.status === 429);
    if (left.length === 0 || round === maxRounds) break;
    await rest(roundRestMs, signal);
  }
  return items.map((item) => results.get(item)!);
}

function resultOf({ line, task }: Item, answer: ItemResult): LineResult {
  if ('envelope' in answer) return { line, id: answer.envelope.id, status: answer.status };
  const id = typeof task['id'] === 'string' ? task['id'] : null;
  return { line, id, status: answer.status, error: answer.error };
}

const maxShown = 20;

function report(results: LineResult[], queue: string, { terminal, exitWith }: Tools): void {
  results.sort((a, b) => a.line - b.line);
  const refused = results.filter(({ error }) => error !== undefined);
  const accepted = results.length - refused.length;
  if (refused.length > 0) exitWith(1);
  const head = `Submitted ${counted(accepted, 'task')} to ${queue}; ${refused.length} rejected.\n`;
  terminal.show({ accepted, refused: refused.length, results }, (out) =>
    refused.length === 0 ? head : `${head}\n${refusedTable(refused, out)}`,
  );
}

function refusedTable(refused: readonly LineResult[], sheet: Sheet): string {
  const rows = refused.slice(0, maxShown).map(({ line, error }) => {
    const { code, title, detail = title } = error as QueueSchema<'BatchItemError'>;
    return [line, { text: code, tone: 'bad' as const }, detail];
  });
  const more = refused.length - maxShown;
  const table = renderTable(['LINE', 'CODE', wrapped('REASON')], rows, sheet);
  return `${table}${more > 0 ? `and ${more} more\n` : ''}`;
}
