import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Workspace packages resolve to their sources, so tests never run against a stale build.
// Only tests that start `bin/ctl` or a server as a process need `npm run build` first; `npm test`
// always builds.
const conditions = ['millrace-source', 'node', 'module', 'import', 'default'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    reporters: ['default', './scripts/closing-line.mjs'],
    pool: 'forks',
    // A test waits more than it computes, so both cores of a small machine are put to work.
    maxWorkers: Math.max(2, availableParallelism()),
    // A hang must end some time; a busy machine must not fail a test.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'beside the code',
          include: ['packages/*/src/**/*.test.ts'],
          // Loading the modules anew for each of hundreds of files costs as much as the tests.
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'whole', include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'] },
      },
    ],
  },
});
