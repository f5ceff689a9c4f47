import { spawn } from 'node:child_process';
import { hostname } from 'node:os';
import { messageOf, UsageError } from '@millrace/kit/errors';
import {
  connectTransport,
  payloadBytes,
  PermanentError,
  startRawWorker,
  type ClaimedTask,
  type RawCall,
} from '@millrace/worker';
import { programName } from '../base/command-name.js';
import { durationOf, wholeNumber } from '../base/arguments.js';
import { harmless } from '../base/exchange.js';
import type { Flags, Tools } from '../base/tools.js';
import { queueApi, type QueueFlags } from './api.js';
import { locateQueue } from './locate.js';

type WorkFlags = QueueFlags &
  Flags<'concurrency lease name'> & { handler?: string[]; label?: string[] };

type Environment = Readonly<Record<string, string | undefined>>;

/** EX_TEMPFAIL of sysexits.h. */
const retryExitCode = 75;
const maxErrorText = 2_048;
const defaultLeaseMs = 30_000;
const leaseRange = { min: 1_000, max: 3_600_000 };

export async function work(
  queue: string,
  command: readonly string[],
  flags: WorkFlags,
  tools: Tools,
): Promise<void> {
  const { terminal, lifecycle } = tools;
  const concurrency = wholeNumber(flags.concurrency, '--concurrency') ?? 1;
  if (concurrency < 1) throw new UsageError('--concurrency must be at least 1.');
  const leaseMs = durationOf(flags.lease, '--lease') ?? defaultLeaseMs;
  if (leaseMs < leaseRange.min || leaseMs > leaseRange.max) {
    throw new UsageError('--lease must be a duration from 1s to 1h.');
  }
  // A wrong address, token or queue is reported now and not by the worker again and again.
  const name = flags.name ?? `${hostname()}-${process.pid}`;
  await queueApi(flags, tools).call('claimTasks', {
    queue,
    body: { worker: name, wait_ms: 0, handlers: ['millrace.probe'] },
  });
  const place = locateQueue(flags, terminal.env);
  await lifecycle.serve(async (stopped) => {
    const transport = connectTransport(place);
    const worker = startRawWorker(
      transport,
      {
        queue,
        name,
        concurrency,
        leaseMs,
        handlers: flags.handler,
        ...(flags.label && { labels: flags.label }),
        onError: (error) => terminal.err.write(`${programName()}: ${harmless(messageOf(error))}\n`),
      },
      (call) => runCommand(command, call, terminal),
    );
    if (!terminal.json) terminal.err.write(`Working on ${queue} as ${name}. Stop with Ctrl-C.\n`);
    await stopped;
    await worker.stop();
    await transport.close();
  });
}

/** Resolves if the command succeeds; throws an error that says whether the queue retries. */
async function runCommand(
  command: readonly string[],
  { claimed, signal }: RawCall,
  { out, err, env }: Tools['terminal'],
): Promise<void> {
  const [first = '', ...args] = command;
  const child = spawn(first, args, {
    shell: args.length === 0,
    env: { ...env, ...fieldsOf(claimed) },
    stdio: ['pipe', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGTERM',
  });
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => out.write(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-maxErrorText);
    err.write(text);
  });
  // A command need not read its payload.
  child.stdin.on('error', () => undefined);
  child.stdin.end(payloadBytes(claimed.payload));
  const end = await new Promise<string | number>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, killedBy) => resolve(code ?? killedBy ?? 'unknown'));
  });
  if (end === 0) return;
  const what = typeof end === 'number' ? `exit code ${end}` : `signal ${end}`;
  const message = `The command ended with ${what}${errors === '' ? '' : `: ${errors.trim()}`}`;
  throw end === retryExitCode || signal.aborted ? new Error(message) : new PermanentError(message);
}

function fieldsOf(task: ClaimedTask): Environment {
  const { id, queue, handler_ref, attempt, max_attempts, redrive_count } = task;
  const { priority, group_key, payload_content_type, created_at, submitted_by } = task;
  const fields = {
    id,
    queue,
    handler_ref,
    attempt,
    max_attempts,
    redrive_count,
    priority,
    group_key: group_key ?? '',
    payload_content_type,
    created_at,
    submitted_by,
    headers: JSON.stringify(task.headers),
  };
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      `MILLRACE_TASK_${name.toUpperCase()}`,
      String(value),
    ]),
  );
}
