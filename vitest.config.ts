import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// Workspace packages resolve to their sources, so tests never run against a stale build.
// Only tests that start `bin/ctl` or a server as a process need `npm run build` first; `npm test`
// always builds.
// vitest passes them on to Node. `import` and `default` apply by themselves; named here, `import`
// would hold for require too.
const conditions = ['millrace-source', 'node'];

/** What takes long begins first, and what is short comes last, so that no core idles at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = ['alone', 'whole', 'beside the code'];
    const rank = ({ project }: TestSpecification) => order.indexOf(project.name);
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Mocks a module, starts a PostgreSQL for the file, or weighs the process that it is in. */
export const alone = [
  'packages/queue/test/postgres/**/*.test.ts',
  'packages/db/test/server/watchers.test.ts',
  'packages/dashboard/src/pages/database/transfer.test.ts',
  'test/several-machines.test.ts',
];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    reporters: ['default', './scripts/closing-line.mjs'],
    pool: 'forks',
    // Many tests wait for others, so there is one more at work than there are cores.
    maxWorkers: availableParallelism() + 1,
    // A hang must end some time; a busy machine must not fail a test.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 20_000 } },
    sequence: { sequencer: LongestFirst },
    // Loading the modules anew for each of hundreds of files costs as much as the tests.
    isolate: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'beside the code',
          include: ['packages/*/src/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...alone],
        },
      },
      {
        extends: true,
        test: {
          name: 'whole',
          include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...alone],
        },
      },
      { extends: true, test: { name: 'alone', include: alone, isolate: true } },
    ],
  },
});
