import { Refusal, UsageError } from '@millrace/kit/errors';
import { humanDuration, parseTimestamp, UnitError } from '@millrace/kit/units';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import type { RestoreTarget } from '@millrace/db';
import { asTyped } from '../base/command-name.js';
import type { Tools } from '../base/tools.js';
import { Progress } from './progress.js';
import { counted } from '@millrace/contract/lists';

const verbs = { check: 'Checking', restore: 'Restored', verify: 'Verifying' } as const;

export async function restoreTo(
  flags: { from: string[]; data: string; to?: string },
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const { data } = flags;
  const progress = new Progress(terminal, '');
  const { seq, records, lineageId } = await restored(flags.from, data, flags.to, progress);
  const took = humanDuration(progress.elapsedMs);
  terminal.show(
    { data, seq, records, lineage_id: lineageId },
    `Restored ${counted(records, 'record')} at commit ${seq} to ` +
      `${data} in ${took}, and verified them.\n` +
      asTyped(`Serve it with: ctl db serve --data ${data}\n`),
  );
}

/** Restores the database of a queue or a daemon, which is in a folder of its data directory. */
export async function restoreService(
  from: readonly string[],
  { data, to }: { data: string; to?: string | undefined },
  { store, name, command }: { store: string; name: string; command: string },
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  targetOf(to);
  makePrivateDirectory(data);
  const { seq, lineageId } = await restored(from, store, to);
  terminal.show(
    { data, seq, lineage_id: lineageId },
    `Restored ${name} at commit ${seq} to ${data}, and verified it.\n` +
      asTyped(`Serve it with: ${command} ${data}\n`),
  );
}

async function restored(
  from: readonly string[],
  directory: string,
  to: string | undefined,
  progress?: Progress,
) {
  const target = targetOf(to);
  const { restore } = await import('@millrace/db');
  return restore(from, directory, {
    to: target,
    ...(progress && {
      onProgress: ({ stage, records, of }) => progress.show({ records, of }, verbs[stage]),
    }),
  })
    .catch((error: unknown) => {
      // The command was used rightly: the files or the directory do not allow it.
      if (!(error instanceof UsageError)) throw error;
      throw new Refusal('RESTORE_REFUSED', error.message, { cause: error });
    })
    .finally(() => progress?.end());
}

/** `1200` is a commit, `2026-05-04T09:30:00Z` a time. */
export function targetOf(text: string | undefined): RestoreTarget | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  try {
    return new Date(parseTimestamp(text));
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
    throw new UsageError(`--to must be a commit number or a time: ${error.message}.`);
  }
}
