// The daemon as a process of its own, with the flags of the command line: what `ctl daemon serve`
// does. Node 20 cannot read TypeScript, so the sources are loaded the way vitest does.
import { createViteServer } from 'vitest/node';

const conditions = ['millrace-source', 'node', 'module', 'import', 'default'];
const vite = await createViteServer({
  configFile: false,
  logLevel: 'error',
  server: { middlewareMode: true, watch: null, ws: false },
  optimizeDeps: { noDiscovery: true },
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
});
const { runDaemon } = await vite.ssrLoadModule(
  new URL('../../src/server/serve.ts', import.meta.url).pathname,
);

const flags = Object.fromEntries(
  process.argv.slice(2).map((arg) => {
    const [name, ...value] = arg.replace(/^--/, '').split('=');
    return [name, value.join('=')];
  }),
);
try {
  process.exitCode = await runDaemon({ flags, environment: process.env });
} catch (error) {
  if (error.name !== 'UsageError') throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
await vite.close();
