/** What one insert over gRPC waits for, step by step: one client, one call at a time. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { markdown, percentile } from '../shared/results.mjs';
import { millraceCalls } from './messages.mjs';
import { RawConnection } from './raw-streams.mjs';
import { startMillrace } from './servers.mjs';

const serverFile = fileURLToPath(new URL('./trace-server.mjs', import.meta.url));
const warmUpShare = 4;

/** Each step with the note that begins it and the one that ends it. */
const steps = [
  ['from the client to the socket of the server', 'sent', 'received'],
  ['frames and headers', 'received', 'queued'],
  ['turn queue', 'queued', 'decoding'],
  ['decode', 'decoding', 'decoded'],
  ['checks', 'decoded', 'submitted'],
  ['wait for the writer', 'submitted', 'running'],
  ['job', 'running', 'ran'],
  ['log frame', 'ran', 'writing'],
  ['log write', 'writing', 'syncing'],
  ['log sync', 'syncing', 'synced'],
  ['settle the call', 'synced', 'encoding'],
  ['encode the answer', 'encoding', 'sending'],
  ['from the server to the client', 'sending', 'answered'],
  ['whole', 'sent', 'answered'],
];

const now = () => Number(process.hrtime.bigint() / 10n) / 100;

/** Shows the steps, and notes them as a Markdown table too. */
export async function runTrace({ root, calls, note, report }) {
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const server = await startMillrace(root, home, [], { file: serverFile, args: [root] });
  try {
    const warmUp = Math.ceil(calls / warmUpShare);
    note(`${warmUp} inserts to warm up, then ${calls}, one at a time ...`);
    const sent = await insertAll(server.grpc, warmUp + calls);
    server.child.send('steps');
    const [notes] = await once(server.child, 'message');
    if (notes.length !== sent.length) {
      throw new Error(`${sent.length} inserts were sent, ${notes.length} were noted`);
    }
    const all = notes.map((each, i) => ({ ...each, ...sent[i] })).slice(warmUp);
    const rows = steps.map((step) => rowOf(step, all));
    report('What one insert waits for', rows);
    note(`\n${markdown(rows)}`);
  } finally {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

async function insertAll(url, count) {
  const times = [];
  let fail;
  const failed = new Promise((_, reject) => (fail = reject));
  const connection = new RawConnection(url, { onData: () => undefined, onEnd: fail });
  // The end of the connection is no failure once all calls are answered.
  failed.catch(() => undefined);
  for (let i = 0; i < count; i++) {
    const call = millraceCalls.insert(i);
    const sent = now();
    const answer = new Promise((resolve) => connection.call(call, resolve));
    const isAnswered = await Promise.race([answer, failed]);
    if (!isAnswered) throw new Error('an insert was refused');
    times.push({ sent, answered: now() });
  }
  connection.destroy();
  return times;
}

function rowOf([step, from, to], all) {
  const times = all.map((each) => each[to] - each[from]).sort((a, b) => a - b);
  if (times.some(Number.isNaN)) throw new Error(`"${step}" was not noted for every insert`);
  const shown = (share) => percentile(times, share).toFixed(1);
  return { step, 'median, us': shown(0.5), 'p99, us': shown(0.99) };
}
