import type { Clock } from '@millrace/kit/clock';
import { runProgram } from '../registry/run-program.js';
import type { ProcessReader, ProcessRow } from './processes.js';

export interface PsOptions {
  clock: Clock;
  environment: Readonly<Record<string, string | undefined>>;
  /** Path of `ps`; default: that of the system. */
  file?: string;
}

const timeoutMs = 10_000;
const columns = 'pid=,ppid=,pgid=,rss=,time=';

/** Lists processes with `ps` where there is no /proc, such as macOS. */
export function psReader({ clock, environment, file = '/bin/ps' }: PsOptions): ProcessReader {
  return async () => {
    const end = await runProgram({
      file,
      args: ['-axo', columns],
      input: '',
      cwd: '/',
      environment: { ...environment, LC_ALL: 'C' },
      timeoutMs,
      signal: new AbortController().signal,
      clock,
    });
    if (end.kind !== 'exited' || end.code !== 0) {
      throw new Error(`${file} did not list the processes (${end.kind})`);
    }
    return end.stdout.split('\n').flatMap((line) => parsePsLine(line) ?? []);
  };
}

/** `  501   1   501   10240   1:02.50`: size in KiB; the process group is used as session. */
export function parsePsLine(line: string): ProcessRow | undefined {
  const [pid, parent, session, rss, time, ...rest] = line.trim().split(/\s+/);
  const cpuMs = parseCpuTime(time ?? '');
  if (cpuMs === undefined || rest.length > 0) return undefined;
  const row = {
    pid: Number(pid),
    parent: Number(parent),
    session: Number(session),
    cpuMs,
    rss: Number(rss) * 1024,
  };
  return Object.values(row).every(Number.isFinite) ? row : undefined;
}

/** `1:02.50` on macOS, `01:02:03` or `2-01:02:03` elsewhere. */
function parseCpuTime(text: string): number | undefined {
  const match = /^(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)$/.exec(text);
  if (!match) return undefined;
  const [days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0));
  return Math.round((((days! * 24 + hours!) * 60 + minutes!) * 60 + seconds!) * 1000);
}
