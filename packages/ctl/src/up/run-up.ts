import { rmSync } from 'node:fs';
import { Refusal } from '@millrace/kit/errors';
import { dataDirectory } from '../data-directory.js';
import { runningUp } from '../queue/locate.js';
import type { Tools } from '../tools.js';
import { bannerFor, eventsFor } from './banner.js';
import { bringUp } from './bring-up.js';
import { makeDataDirectory, queueAddressFile } from './own-files.js';
import type { Addresses } from './settings.js';
import { runParts } from './supervisor.js';

export interface UpFlags extends Addresses {
  data?: string;
}

/** Runs the three servers as processes that know one another, until it is told to stop. */
export async function runUp({ data, ...addresses }: UpFlags, tools: Tools): Promise<void> {
  const { out, env, json } = tools.terminal;
  const dataDir = dataDirectory(data, env);
  makeDataDirectory(dataDir);
  await tools.lifecycle.serve(async (stopped) => {
    const up = await bringUp({ dataDir, addresses, stopped }, tools).catch((error: unknown) => {
      throw besideAnother(dataDir, error);
    });
    const { kept } = up;
    try {
      if (up.hasStarted) {
        if (json) out.write(`${kept.map(eventsFor).join('')}{"event":"ready"}\n`);
        else out.write(bannerFor(kept, dataDir, out));
      }
      await runParts(kept, stopped);
    } finally {
      rmSync(queueAddressFile(dataDir), { force: true });
    }
    out.write(json ? '{"event":"stopped"}\n' : '\nStopped.\n');
  });
}

/** Whoever starts it a second time mostly forgot the first. */
function besideAnother(dataDir: string, error: unknown): unknown {
  const other = runningUp(dataDir);
  if (!other || !(error instanceof Refusal)) return error;
  return new Refusal(
    error.code,
    `Millrace already runs on ${dataDir}, as process ${other.pid}: \`ctl status\` shows it.`,
    { cause: error },
  );
}
