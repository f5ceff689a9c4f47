import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const engine = fileURLToPath(new URL('.', import.meta.url));

/**
 * Runs an exported function of a module of the engine in a process of its own, which is meant to
 * end by SIGKILL: nothing is flushed, closed or tidied up. Returns the lines that it wrote before.
 */
export function runUntilKilled(module: string, name: string, ...args: unknown[]): string[] {
  // Node 20 cannot read TypeScript, so the child loads the module the way vitest does.
  const script = `
    import { createViteServer } from 'vitest/node';
    const conditions = ['millrace-source', 'node', 'module', 'import', 'default'];
    const server = await createViteServer({
      configFile: false,
      logLevel: 'error',
      server: { middlewareMode: true, watch: null, ws: false },
      optimizeDeps: { noDiscovery: true },
      resolve: { conditions },
      ssr: { resolve: { conditions, externalConditions: conditions } },
    });
    const loaded = await server.ssrLoadModule(${JSON.stringify(`${engine}${module}`)});
    await loaded[${JSON.stringify(name)}](...${JSON.stringify(args)});
    throw new Error('It was not killed');
  `;
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
    cwd: engine,
    timeout: 60_000,
  });
  if (child.signal !== 'SIGKILL') {
    throw new Error(`The process ended by ${child.signal ?? child.status}: ${child.stderr}`);
  }
  return child.stdout.split('\n').slice(0, -1);
}
