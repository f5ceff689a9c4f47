/** The whole product as a user starts it, in a folder of its own, with a made-up agent. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fakeAgentProgram } from '../packages/daemon/dist/fake-agent/index.js';

export const backend = 'made-up';

export async function startSystem({ root, handlerPort, note }) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-soak-'));
  const data = join(folder, 'data');
  const settings = join(folder, '.config', 'millrace');
  for (const each of [data, settings, join(folder, 'work')]) mkdirSync(each, { recursive: true });
  const binary = join(folder, 'made-up-agent');
  writeFileSync(binary, `#!/bin/sh\nexec '${process.execPath}' '${fakeAgentProgram}' "$@"\n`);
  chmodSync(binary, 0o700);
  const extra = `[{id: ${backend}, binary: '${binary}', like: claude}]`;
  writeFileSync(
    join(settings, 'config.yaml'),
    `backends: {extra: ${extra}, local_url: 'http://127.0.0.1:9'}\n`,
  );
  const allowed = `{scheme: http, host: 127.0.0.1, port: ${handlerPort}, networks: [127.0.0.0/8]}`;
  writeFileSync(join(data, 'queue.yaml'), `callback_allowlist: [${allowed}]\n`);
  const ports = ['listen', 'queue-listen', 'metrics-listen', 'db-grpc', 'db-http'];
  const flags = ports.flatMap((name) => [`--${name}`, '127.0.0.1:0']);
  const child = spawn(
    process.execPath,
    [join(root, 'bin', 'ctl'), 'up', '--json', '--data', data, ...flags],
    {
      env: { PATH: process.env.PATH, HOME: folder, MILLRACE_LOG: 'warn' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let errors = '';
  child.stderr.on('data', (bytes) => (errors = (errors + bytes).slice(-20_000)));
  const urls = new Map();
  const ready = new Promise((resolve, reject) => {
    child.on('close', (code) => reject(new Error(`ctl up ended with ${code}: ${errors}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { event, component, listener, url } = JSON.parse(line);
      if (event === 'listening') urls.set(`${component} ${listener}`, url);
      if (event === 'ready') resolve();
    });
  });
  await ready;
  note(`everything runs, in ${folder}`);
  return {
    folder,
    url: (component) => urls.get(`${component} http`),
    token: readFileSync(join(data, 'queue.token'), 'utf8').trim(),
    daemonToken: readFileSync(join(data, 'daemon.token'), 'utf8').trim(),
    dbKey: readFileSync(join(data, 'db', 'db.key'), 'utf8').trim(),
    parts: () => partsOf(child.pid),
    async stop() {
      const ended = once(child, 'close');
      child.kill('SIGTERM');
      const [code] = await ended;
      rmSync(folder, { recursive: true, force: true });
      return code;
    },
  };
}

/** The processes of the servers, by their names. */
function partsOf(parent) {
  const lines = execFileSync('ps', ['-axo', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  const found = lines.flatMap((line) => {
    const [, pid, ppid, args] = /^ *(\d+) +(\d+) +(.*)$/.exec(line) ?? [];
    const name = / (db|queue|daemon) serve /.exec(args ?? '')?.[1];
    return Number(ppid) === parent && name ? [[name, Number(pid)]] : [];
  });
  return new Map(found);
}
