import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DaemonServer } from './daemon-server.js';
import { CTL } from './run-ctl.js';
import { hasTmux, TmuxTerminal } from './tmux-terminal.js';

describe.skipIf(!hasTmux)('config edit with a running daemon (needs tmux)', () => {
  const server = new DaemonServer();
  let file: string;
  beforeAll(async () => {
    file = server.write(
      '.config/millrace/config.yaml',
      '# ours\ntokens:\n  warn: 100k\nmetrics: true\n',
    );
    await server.start();
  });
  afterAll(() => server.remove());

  test('config edit: the daemon applies what it can, and the rest is named', async () => {
    const terminal = new TmuxTerminal({ columns: 120, rows: 24 }, { HOME: server.home });
    try {
      const editor = 'sed -i -e s/100k/150k/ -e s/true/false/';
      terminal.run(`clear; EDITOR='${editor}' '${process.execPath}' '${CTL}' config edit; echo $?`);
      await expect
        .poll(() => terminal.screen(), { timeout: 60_000, interval: 100 })
        .toMatch(
          /^Saved .*\nThe running daemon applied tokens\.warn\.\n.* metrics after: ctl restart daemon\n0/m,
        );
    } finally {
      terminal.close();
    }
    expect(readFileSync(file, 'utf8')).toContain('# ours\ntokens:\n  warn: 150k');
    const [entry] = (await server.json(['config', 'tokens.warn'])).entries;
    expect(entry).toMatchObject({ value: '150k' });
  });
});
