/**
 * `npm run conformance -- h2spec|mcp|grpc`: runs programs of others against the database server, the
 * daemon's MCP server or the queue's gRPC. What is not installed is skipped, and named.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startMillrace } from '../bench/db-server/servers.mjs';
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
const home = mkdtempSync(join(tmpdir(), 'millrace-h2spec-'));
const server = await startMillrace(root, home);
const { hostname, port } = new URL(server.grpc);
const { status } = spawnSync('h2spec', ['-h', hostname, '-p', port, ...args], { stdio: 'inherit' });
await server.stop();
rmSync(home, { recursive: true, force: true });
process.exit(status ?? 1);
