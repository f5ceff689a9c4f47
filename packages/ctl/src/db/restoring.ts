import { humanDuration } from '@millrace/kit/units';
import type { Tools } from '../tools.js';
import { Progress } from './progress.js';
import { counted } from './counted.js';

const verbs = { check: 'Checking', restore: 'Restored', verify: 'Verifying' } as const;

export async function restoreTo(
  files: readonly string[],
  directory: string,
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const { restore } = await import('@millrace/db');
  const progress = new Progress(terminal, '');
  const restored = await restore(files, directory, {
    onProgress: ({ stage, records, of }) => progress.show({ records, of }, verbs[stage]),
  }).finally(() => progress.end());
  const { out, json } = terminal;
  if (json) {
    const { seq, records, lineageId } = restored;
    const shown = { data: directory, seq, records, lineage_id: lineageId };
    out.write(`${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  const took = humanDuration(progress.elapsedMs);
  out.write(
    `Restored ${counted(restored.records, 'record')} at commit ${restored.seq} to ` +
      `${directory} in ${took}, and verified them.\nServe it with: ctl db serve --data ` +
      `${directory}\n`,
  );
}
