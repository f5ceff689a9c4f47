import { closeSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { formatTimestamp } from '@millrace/kit/units';

/** Number of logs to keep; older ones are removed. */
const maxLogs = 100;

export interface LogFile {
  readonly path: string;
  readonly fd: number;
  close(): void;
}

/**
 * Creates the log of a command's whole output: `<data_dir>/logs/check/<time>-<pid>-npm-test.log`.
 */
export function openLogFile(
  dataDir: string,
  { feature, command, now }: { feature: string; command: readonly string[]; now: number },
): LogFile {
  const folder = join(dataDir, 'logs', feature);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeOld(folder);
  const time = formatTimestamp(now).replaceAll(':', '-');
  const path = join(folder, `${time}-${process.pid}-${nameOf(command)}.log`);
  // Both streams append to it, so that their lines stay in order.
  const fd = openSync(path, 'ax', 0o600);
  return { path, fd, close: () => closeSync(fd) };
}

/** The program and its subcommand, without options and scripts: `npm-test`. */
function nameOf(command: readonly string[]): string {
  const words = command.slice(0, 3).filter((word) => /^[A-Za-z0-9_./@:]/.test(word));
  const plain = words.filter((word) => /^[\w./@:+-]{1,80}$/.test(word));
  const name = plain
    .map((word) =>
      word
        .split('/')
        .at(-1)!
        .replaceAll(/[^\w.+-]/g, '-'),
    )
    .join('-');
  return name.slice(0, 40) || 'command';
}

function removeOld(folder: string): void {
  const names = readdirSync(folder).filter((name) => name.endsWith('.log'));
  // Names start with the time. Another process may remove the same file.
  const old = names
    .toSorted()
    .toReversed()
    .slice(maxLogs - 1);
  for (const name of old) rmSync(join(folder, name), { force: true });
}
