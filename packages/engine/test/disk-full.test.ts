import { spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { problemsOf } from './consistency.test-support.js';
import { useScratch } from './scratch.test-support.js';

const scratch = useScratch();
const program = fileURLToPath(new URL('programs/fill.mjs', import.meta.url));
const canLimit = process.platform !== 'win32';
const canLiftLimit = spawnSync('prlimit', ['--version']).status === 0;

/** Runs the program with a file size limit, which simulates a full disk. */
function fill(directory: string, bytes: number) {
  const blocks = Math.floor(bytes / 512);
  const command = `ulimit -S -f ${blocks} && exec "$0" "$1" "$2"`;
  const child = spawn('sh', ['-c', command, process.execPath, program, directory], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise<string>((resolve) => {
    child.on('close', (code, signal) => resolve(`${code ?? signal} ${errors}`));
  });
  const next = async () => {
    const line = await lines.next();
    if (line.done) throw new Error(`the program ended: ${await ended}`);
    return JSON.parse(line.value) as Record<string, unknown>;
  };
  return { child, next, ended };
}

describe.runIf(canLimit)('when there is no more room', () => {
  test('writes are refused with DISK_FULL, nothing acknowledged is lost and reads continue', async () => {
    const directory = scratch.directory();
    const { child, next, ended } = fill(directory, 3_000_000);
    const first = await next();
    expect(first['refusals']).toEqual(['DISK_FULL']);
    expect(first['acknowledged']).toBeGreaterThan(50);
    expect(first['missing']).toBe(0);
    expect(first['found']).toBe(first['acknowledged']);
    expect(await next()).toEqual({
      transaction: 'DISK_FULL',
      found: first['found'],
      whole: true,
    });
    child.stdin.end();
    expect(await next()).toEqual({ whole: true, acknowledged: first['acknowledged'] });
    expect(await next()).toEqual({ closed: true });
    expect(await ended).toMatch(/^0 /);

    // With free space the same database works again.
    const db = await scratch.open({}, directory);
    expect(await db.collection('docs').count({})).toBe(first['acknowledged']);
    await db.collection('docs').insert({ n: 1, pad: 'x'.repeat(1_000_000) });
    expect(problemsOf(db.core)).toEqual([]);
  });

  test.runIf(canLiftLimit)('writes work again once there is free space', async () => {
    const { child, next, ended } = fill(scratch.directory(), 3_000_000);
    const first = await next();
    expect(first['refusals']).toEqual(['DISK_FULL']);
    await next();
    const lifted = spawnSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited']);
    expect(lifted.stderr.toString()).toBe('');
    child.stdin.end('room\n');
    expect(await next()).toEqual({
      refusals: [],
      missing: 0,
      found: Number(first['acknowledged']) + 300,
    });
    const last = await next();
    expect(last).toEqual({ whole: true, acknowledged: Number(first['acknowledged']) + 300 });
    expect(await next()).toEqual({ closed: true });
    expect(await ended).toMatch(/^0 /);
  });
});
