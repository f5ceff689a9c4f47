import { spawn as start, type ChildProcess } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect } from 'vitest';
import { ApiClient } from './client.js';
import { noLocalModel } from './daemon.js';
import { FakeClis } from './fake-clis.js';
import { gitIdentity } from './sessions.js';

const ctl = fileURLToPath(new URL('../../../../bin/ctl', import.meta.url));

export interface ServedDaemon {
  api: ApiClient;
  end: (signal: NodeJS.Signals) => Promise<void>;
}

/** A home with its own programs, and daemons in it that are processes, to be killed. */
export function useServedHome(name: string) {
  const children: ChildProcess[] = [];
  const home = realpathSync(mkdtempSync(join(tmpdir(), `mr-${name}-`)));
  const clis = new FakeClis(join(home, 'bin'));
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true });
  });
  const serve = async (): Promise<ServedDaemon> => {
    const flags = {
      auth: 'none',
      listen: '127.0.0.1:0',
      data: join(home, 'data'),
      'backends-local-url': noLocalModel,
    };
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    const child = start(process.execPath, [ctl, 'daemon', 'serve', ...args], {
      env: { PATH: `${clis.path}:${process.env['PATH']}`, HOME: home, ...gitIdentity },
    });
    children.push(child);
    let [out, err] = ['', ''];
    child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
    child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()));
    const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
    const line = () => (out.includes('\n') ? '' : `no line yet: ${err.slice(-500)}`);
    await expect.poll(line, { timeout: 150_000 }).toBe('');
    const end = async (signal: NodeJS.Signals) => {
      child.kill(signal);
      await ended;
    };
    return { api: new ApiClient(JSON.parse(out.split('\n')[0]!).url as string), end };
  };
  return { home, clis, serve };
}
