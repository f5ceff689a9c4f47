/** Each queue with its server, one process that submits and one that works. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startBase } from '../queue/contestants.mjs';
import { logFile, startModule, startProgram, stop } from '../shared/processes.mjs';

const sideFile = fileURLToPath(new URL('side.mjs', import.meta.url));
const token = 'bench-token-0123456789';

export async function startContestant(kind, root, home) {
  const base = kind === 'millrace' ? await startQueue(root, home) : await startBase(kind, home);
  const submitter = await startSide(kind, base.connection);
  const worker = await startSide(kind, base.connection);
  return {
    name: kind,
    submitter,
    worker,
    pid: base.pid,
    stop: async () => {
      await submitter.stop();
      await worker.stop();
      await base.stop();
    },
  };
}

async function startSide(kind, connection) {
  const child = startModule(sideFile, [kind, JSON.stringify(connection)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let waiting;
  child.on('message', (message) => waiting(message));
  child.on('exit', () => waiting?.({ error: `a side of ${kind} ended` }));
  const answer = async () => {
    const { value, error } = await new Promise((resolve) => (waiting = resolve));
    if (error) throw new Error(error);
    return value;
  };
  await answer();
  return {
    ask: (command, params = {}) => {
      child.send({ command, ...params });
      return answer();
    },
    stop: () => stop(child),
  };
}

async function startQueue(root, home) {
  const directory = join(home, 'millrace');
  mkdirSync(directory, { recursive: true });
  const hash = createHash('sha256').update(token).digest('hex');
  const grants = [{ queue: '*', role: 'admin' }];
  const tokens = [{ id: 'bench', principal: 'bench', token_sha256: hash, grants }];
  writeFileSync(join(directory, 'tokens.yaml'), JSON.stringify({ tokens }), { mode: 0o600 });
  const any = '127.0.0.1:0';
  const settings = {
    listen: any,
    metrics_listen: any,
    data: './data',
    tokens_file: 'tokens.yaml',
    // The peers shed no load, and shed submits would be sent again a second later.
    shed_target_ms: 0,
    max_connections: 2_000,
    max_inflight: 2_000,
  };
  const config = join(directory, 'queue.yaml');
  writeFileSync(config, JSON.stringify(settings));
  const server = startProgram(
    process.execPath,
    [join(root, 'bin', 'ctl'), 'queue', 'serve', '--config', config],
    { stdio: ['ignore', 'pipe', logFile(home, 'queue-server')] },
  );
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const { value: line, done } = await lines.next();
  if (done) throw new Error(`ctl queue serve did not start: see ${home}/queue-server.log`);
  server.stdout.resume();
  const { url } = JSON.parse(line);
  const answer = await fetch(`${url}/v1/admin/queues/bench/config`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      callback: { protocol: 'pull' },
      limits: { max_in_flight: 1_000 },
      retention: { succeeded_ms: 1_000 },
    }),
  });
  if (!answer.ok) throw new Error(`The queue could not be created: ${await answer.text()}`);
  return { connection: { url, token }, pid: server.pid, stop: () => stop(server) };
}
