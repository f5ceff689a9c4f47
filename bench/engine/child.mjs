/**
 * The process of one engine: heaps and event loops of different engines must not mix. It does one
 * thing at a time, as the parent asks: `open` an engine, put a load on it, `close`.
 */
import { loads } from './loads.mjs';

const engines = {
  millrace: () => import('./engines/millrace.mjs'),
  lmdb: () => import('./engines/lmdb.mjs'),
  sqlite: () => import('./engines/sqlite.mjs'),
  postgres: () => import('./engines/postgres.mjs'),
};

const [name, directory] = process.argv.slice(2);
const module = await engines[name]();
let engine;

const commands = {
  async open({ tables }) {
    const started = performance.now();
    engine = await module.open(directory, tables);
    return performance.now() - started;
  },
  async close() {
    await engine?.close();
    engine = undefined;
  },
};

process.on('message', ({ command, options }) => {
  obey(command, { ...options, directory }).then(
    (result) => answer({ result }),
    (error) => answer({ error: error?.stack ?? String(error) }),
  );
});

function answer(message) {
  // A run that was broken off wants no answers any more.
  if (process.connected) process.send(message);
}

async function obey(command, options) {
  if (commands[command]) return commands[command](options);
  return loads[command](engine, options, module);
}

// The parent is gone or done with us: what the engine started (a server) must not stay behind.
process.once('disconnect', () => {
  commands.close().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
});

// Ctrl-C reaches us too; the parent decides when we end.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined);
