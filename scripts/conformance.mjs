/**
 * `npm run conformance -- h2spec|mcp|grpc`: runs programs of others against the gRPC ports of
 * database and queue, the daemon's MCP server or the queue's gRPC. What is not installed is skipped, and named.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../bench/attacks/servers.mjs';
import { runGrpc } from '../conformance/grpc.mjs';
import { runMcp } from '../conformance/mcp.mjs';
import { hasCommand } from '../bench/shared/processes.mjs';
import { prepare, root, say } from './prepare.mjs';

const [suite, ...args] = process.argv.slice(2);
if (suite === 'mcp') {
  prepare();
  process.exit((await runMcp(root, say)) ? 0 : 1);
}
if (suite === 'grpc') {
  prepare();
  process.exit((await runGrpc(root, say)) ? 0 : 1);
}
if (suite !== 'h2spec') {
  say('usage: npm run conformance -- mcp | grpc | h2spec [options of h2spec]');
  process.exit(2);
}
if (!hasCommand('h2spec')) {
  say('skipped: h2spec is not installed (https://github.com/summerwind/h2spec/releases)');
  process.exit(0);
}
prepare();
let failed = 0;
for (const kind of ['db', 'queue']) {
  say(`h2spec: gRPC port of ${kind}`);
  const home = mkdtempSync(join(tmpdir(), 'millrace-h2spec-'));
  const server = await startServer(kind, root, home);
  const { hostname, port } = new URL(server.grpc);
  const options = ['-h', hostname, '-p', port, ...args];
  const { status } = spawnSync('h2spec', options, { stdio: 'inherit' });
  if (status !== 0) failed++;
  await server.stop();
  rmSync(home, { recursive: true, force: true });
}
process.exit(failed > 0 ? 1 : 0);
