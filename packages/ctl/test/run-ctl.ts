import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Lifecycle } from '../src/base/lifecycle.js';
import { run } from '../src/run.js';

export const CTL = fileURLToPath(new URL('../../../bin/ctl', import.meta.url));

export interface Ended {
  code: number | null;
  signal: string | null;
  out: string;
  err: string;
}

export interface Started {
  child: ChildProcessWithoutNullStreams;
  ended: Promise<Ended>;
  /** Resolves once stdout or stderr holds the text; rejects if the process ends without it. */
  says: (text: string) => Promise<void>;
}

/** Starts the built `bin/ctl` with an environment of its own, so that ours cannot colour it. */
export function startCtl(
  args: readonly string[],
  env: Record<string, string> = {},
  { cwd, input }: { cwd?: string; input?: string } = {},
): Started {
  const base = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent' };
  const child = spawn(process.execPath, [CTL, ...args], { cwd, env: { ...base, ...env } });
  if (input !== undefined) child.stdin.end(input);
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, out, err }));
  });
  const says = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (out.includes(text) || err.includes(text)) resolve();
      };
      child.stdout.on('data', check);
      child.stderr.on('data', check);
      check();
      ended.then(
        () => reject(new Error(`ctl ended without saying "${text}": ${out}${err}`)),
        reject,
      );
    });
  return { child, ended, says };
}

/** As `startCtl`, for a test whose subject is the process. */
export function ctl(args: readonly string[], env?: Record<string, string>): Promise<Ended> {
  return startCtl(args, env).ended;
}

/** Runs the command line of the sources in this process, which takes a tenth of the time. */
export async function ctlHere(
  args: readonly string[],
  env: Record<string, string> = {},
  { cwd = process.cwd(), input = '' }: { cwd?: string; input?: string } = {},
): Promise<Ended> {
  let [out, err] = ['', ''];
  const outside = {
    stdout: { write: (text: string | Uint8Array) => (out += Buffer.from(text as string)) },
    stderr: { write: (text: string | Uint8Array) => (err += Buffer.from(text as string)) },
    stdin: Readable.from(input === '' ? [] : [Buffer.from(input)]),
    env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...env },
  };
  const lifecycle: Lifecycle = {
    interrupted: new AbortController().signal,
    serve: (work) => work(Promise.resolve()),
    onInterrupt: () => () => undefined,
    handOver: (work) => work(),
  };
  const before = process.cwd();
  process.chdir(cwd);
  try {
    const code = await run(args, outside, lifecycle);
    return { code, signal: null, out, err };
  } finally {
    process.chdir(before);
  }
}
