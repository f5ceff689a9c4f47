// @module-tag campaign-process
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DbServer } from './db-server.js';
import { CTL, type Started } from './run-ctl.js';
import { hasTmux, TmuxTerminal } from './tmux-terminal.js';

const patient = { timeout: 60_000, interval: 100 };
/** More than the buffers of a connection hold, so that a stopped server stops the command. */
const records = 8_000;
const progress = /^Imported \[[#.]+\] \d+%, \S+ records, /m;

describe.skipIf(!hasTmux)('Ctrl-C in a terminal (needs tmux)', () => {
  const server = new DbServer();
  let running: Started;
  let terminal: TmuxTerminal;

  beforeAll(async () => {
    running = await server.start();
    const text = 'x'.repeat(4_000);
    const line = (at: number) => `${JSON.stringify({ at, text })}\n`;
    writeFileSync(
      join(server.folder, 'many'),
      Array.from({ length: records }, (_, at) => line(at)).join(''),
    );
    await server.json(['import', 'parts', 'many']);
  }, 180_000);
  afterEach(() => {
    running.child.kill('SIGCONT');
    terminal.close();
  });
  afterAll(() => server.remove());

  const unfinished = () =>
    readdirSync(server.folder).filter((name) => name.includes('.unfinished-'));

  function run(before: string, args: string): void {
    terminal = new TmuxTerminal({ columns: 100, rows: 24 });
    terminal.run(`cd '${server.folder}'; clear`);
    terminal.run(`${before}'${process.execPath}' '${CTL}' db ${args}; echo "code $?"`);
  }

  /** The message of the shell is on a line of its own, and the cursor is shown. */
  async function leavesPrompt(): Promise<void> {
    await expect.poll(() => terminal.screen(), patient).toMatch(/^code 130\nprompt\$ *$/m);
    expect(terminal.hasCursor).toBe(true);
    expect(unfinished()).toEqual([]);
  }

  test.each([
    ['export', 'export parts --out copy'],
    ['backup', 'backup --out copy'],
  ])('%s: leaves a prompt, exit code 130 and no file', async (_name, args) => {
    run('', args);
    const hasData = () => unfinished().some((name) => statSync(join(server.folder, name)).size > 0);
    await expect.poll(hasData, { timeout: 60_000, interval: 2 }).toBe(true);
    running.child.kill('SIGSTOP');
    terminal.press('C-c');
    await leavesPrompt();
    expect(readdirSync(server.folder)).not.toContain('copy');
  });

  test('import: leaves a prompt, exit code 130 and the line to resume with', async () => {
    run('', 'import lines many --batch 10');
    await expect.poll(() => terminal.screen(), { ...patient, interval: 10 }).toMatch(progress);
    running.child.kill('SIGSTOP');
    terminal.press('C-c');
    await leavesPrompt();
    expect(terminal.screen()).toMatch(/Stopped at line \d+\. Resume with --start-line \d+/);
  });
});
