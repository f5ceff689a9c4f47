import { mkdir } from 'node:fs/promises';
import type { CtlCommand } from '../command.js';
import type { Tools } from '../registry.js';

export function build(up: CtlCommand, { terminal, lifecycle }: Tools): void {
  up.description(
    'Starts the database, the queue and the daemon on this machine, prints where they listen and ' +
      'runs until Ctrl-C, which lets them finish what they are doing and stops them.',
  )
    .option('--data <dir>', 'Keep the data in this directory (default: your data directory)')
    .example('ctl up', 'start everything; Ctrl-C stops it')
    .example('ctl up --data ./data', 'keep the data in a directory of your choice')
    .example('ctl up --json', 'one line of JSON per event, for scripts')
    .exitCode(0, 'stopped cleanly by Ctrl-C or SIGTERM')
    .exitCode(1, 'a part failed')
    .action(async (options: { data?: string }) => {
      const [{ parts }, { startParts }, { bannerFor, eventsFor }, { dataDirectory }] =
        await Promise.all([
          import('../up/parts.js'),
          import('../up/supervisor.js'),
          import('../up/banner.js'),
          import('../data-directory.js'),
        ]);
      const { out, json } = terminal;
      const dataDir = dataDirectory(options.data, terminal.env);
      await makeDataDirectory(dataDir);

      await lifecycle.serve(async (stopped) => {
        const supervised = await startParts(parts, { dataDir });
        out.write(json ? eventsFor(supervised) : bannerFor(supervised, dataDir, out));
        await supervised.runUntil(stopped);
        out.write(json ? `${JSON.stringify({ event: 'stopped' })}\n` : '\nStopped.\n');
      });
    });
}

async function makeDataDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { Refusal, messageOf } = await import('@millrace/kit/errors');
    throw new Refusal(
      'DATA_DIRECTORY_UNUSABLE',
      `cannot keep data in ${path}: ${messageOf(error)}. Choose another with --data DIR.`,
      { cause: error },
    );
  }
}
