/**
 * Runs Python's grpcio against the queue: a client, a pull worker and a handler that know our proto
 * file only. Needs Python 3 with grpcio and protobuf; set PYTHON to choose one.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createHash } from 'node:crypto';
import { freePort, logFile, startProgram, stop } from '../bench/shared/processes.mjs';

/** Resolves with true when everything passed. */
export async function runGrpc(root, say) {
  const python = pythonWithGrpc();
  if (python === undefined) {
    say('skipped: no Python 3 with grpcio and protobuf is installed (set PYTHON to name one)');
    return true;
  }
  const home = mkdtempSync(join(tmpdir(), 'millrace-grpc-'));
  const descriptors = join(home, 'queue.binpb');
  const buf = join(root, 'node_modules', '.bin', 'buf');
  const build = ['build', '--as-file-descriptor-set', '-o', descriptors];
  const built = spawnSync(buf, build, {
    cwd: join(root, 'packages', 'contract'),
    stdio: 'inherit',
  });
  if (built.status !== 0) return false;
  const handlerPort = await freePort();
  const server = await startQueue(root, home, handlerPort);
  try {
    const script = join(root, 'conformance', 'grpc', 'use_queue.py');
    const args = [script, descriptors, server.grpc, server.http, token, String(handlerPort)];
    return spawnSync(python, args, { stdio: 'inherit', timeout: 180_000 }).status === 0;
  } finally {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

const token = 'mr_conformance';

function pythonWithGrpc() {
  const candidates = [process.env['PYTHON'], 'python3', '/usr/bin/python3'];
  return candidates.find(
    (python) =>
      python !== undefined &&
      spawnSync(python, ['-c', 'import grpc, google.protobuf']).status === 0,
  );
}

async function startQueue(root, home, handlerPort) {
  const data = join(home, 'data');
  mkdirSync(data, { mode: 0o700 });
  const hash = createHash('sha256').update(token).digest('hex');
  const tokensFile = join(home, 'tokens.yaml');
  const grants = '[{queue: "*", role: admin}]';
  writeFileSync(
    tokensFile,
    `tokens:\n  - {id: all, principal: all, token_sha256: ${hash}, grants: ${grants}}\n`,
    { mode: 0o600 },
  );
  const config = join(home, 'queue.yaml');
  writeFileSync(
    config,
    'callback_allowlist:\n' +
      `  - {scheme: grpc, host: 127.0.0.1, port: ${handlerPort}, networks: [127.0.0.0/8]}\n`,
  );
  const any = '127.0.0.1:0';
  const flags = ['--config', config, '--data', data, '--tokens-file', tokensFile];
  const listeners = ['--listen', any, '--metrics-listen', any, '--grpc', any];
  const server = startProgram(
    process.execPath,
    [join(root, 'bin', 'ctl'), 'queue', 'serve', ...flags, ...listeners],
    { stdio: ['ignore', 'pipe', logFile(home, 'queue')] },
  );
  const urls = {};
  for await (const line of createInterface({ input: server.stdout })) {
    const { listener, url } = JSON.parse(line);
    urls[listener] = url;
    if (urls.grpc && urls.http) break;
  }
  if (!urls.grpc) throw new Error(`ctl queue serve ended before it was ready: see ${home}`);
  server.stdout.resume();
  return { grpc: new URL(urls.grpc).host, http: urls.http, stop: () => stop(server) };
}
