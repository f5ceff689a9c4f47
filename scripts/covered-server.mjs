/**
 * Runs a built server in this process under V8's precise coverage, for request-files.mjs:
 * `node scripts/covered-server.mjs PART --flag=value ...`. Reports its listeners over IPC. Each
 * message to it is answered with the source files that executed since the message before.
 */
import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './prepare.mjs';

const runners = { queue: 'runQueue', db: 'runDatabase', daemon: 'runDaemon' };
const [part, ...args] = process.argv.slice(2);
const flags = Object.fromEntries(
  args.map((arg) => {
    const [name, ...value] = arg.replace(/^--/, '').split('=');
    return [name, value.join('=')];
  }),
);

const listeners = [];
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

process.on('message', () => {
  void executedFiles().then((files) => process.send({ files }));
});
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
const server = await import(`../packages/${part}/dist/server/serve.js`);
process.exitCode = await server[runners[part]]({
  flags,
  environment: process.env,
  write: (line) => {
    // All listeners are announced at once.
    if (listeners.push(JSON.parse(line)) === 1) setImmediate(() => process.send({ listeners }));
  },
});

/** Taking the coverage also sets all counts back to 0. */
async function executedFiles() {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result
    .filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
    .flatMap(({ url }) => {
      const path = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : '';
      const [, owner, rest] = /^packages\/([a-z]+)\/dist\/(.+)\.js$/.exec(path) ?? [];
      return owner === undefined || owner === 'dashboard' ? [] : [`${owner}/${rest}`];
    });
}
