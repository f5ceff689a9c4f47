/** Each server as a user starts it, on loopback. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startMillrace } from '../db-server/servers.mjs';
import { logFile, startProgram, stop } from '../shared/processes.mjs';

export function startServer(kind, root, home) {
  if (kind === 'db') return startMillrace(root, home);
  return kind === 'queue' ? startQueue(root, home) : startDaemon(root, home);
}

async function startQueue(root, home) {
  const token = `mrq_${'a'.repeat(40)}`;
  const hash = createHash('sha256').update(token).digest('hex');
  const grants = [{ queue: '*', role: 'admin' }];
  const tokens = join(home, 'tokens.yaml');
  writeFileSync(
    tokens,
    JSON.stringify({ tokens: [{ id: 'bench', principal: 'bench', token_sha256: hash, grants }] }),
    { mode: 0o600 },
  );
  const flags = ['--metrics-listen', '127.0.0.1:0', '--tokens-file', tokens];
  flags.push('--grpc', '127.0.0.1:0');
  // In the environment, where an older build ignores it.
  process.env['MILLRACE_QUEUE_MAX_WAITING_CLAIMS'] = '20000';
  return start(root, home, ['queue', 'serve', '--data', join(home, 'queue'), ...flags], token);
}

async function startDaemon(root, home) {
  const token = `mrd_${'a'.repeat(40)}`;
  const flags = ['--data-dir', join(home, 'daemon'), '--token', token];
  return start(root, home, ['daemon', 'serve', ...flags], token);
}

async function start(root, home, args, token) {
  const environment = { ...process.env, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home };
  const server = startProgram(
    process.execPath,
    [join(root, 'bin', 'ctl'), ...args, '--listen', '127.0.0.1:0'],
    { stdio: ['ignore', 'pipe', logFile(home, 'server')], env: environment },
  );
  const urls = {};
  const wanted = args.includes('--grpc') ? ['http', 'grpc'] : ['http'];
  for await (const line of createInterface({ input: server.stdout })) {
    const { event, listener, url } = JSON.parse(line);
    if (event === 'listening') urls[listener] = url.replace('grpc:', 'http:');
    if (!wanted.every((name) => urls[name])) continue;
    server.stdout.resume();
    return { ...urls, token, pid: server.pid, stop: () => stop(server) };
  }
  throw new Error(`ctl ${args.join(' ')} ended before it was ready: see ${home}/server.log`);
}
